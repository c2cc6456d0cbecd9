"""Replays a recording as a simulation: the recorded changes happen again, with new scheduling decisions.

The initial objects exist from the start, and objects change at the recorded times. A pod is created at its recorded
time, without its recorded node, unless it was bound before the recording began or by another scheduler; it ends after
the same time on a node as recorded. A pod that the scheduler evicts is gone after half a second. No controllers or
kubelets are simulated.
"""

from functools import partial
from pathlib import Path
from typing import Any

from kubestow.api.files import ObjectsError
from kubestow.api.pod import Pod
from kubestow.api.timestamps import parse_time
from kubestow.simulator.contents import ObjectError, name_of
from kubestow.simulator.recording.files import Entry, read
from kubestow.simulator.simulation import Simulation

Object = dict[str, Any]
_DONE = ("Succeeded", "Failed")
_STOP_SECONDS = 0.5
_TAIL_SECONDS = 1.0
"""Time after the last line of a killed recorder, so that its last changes take effect."""
_SAMPLES = 500


class _Life:
    """The recorded life of a pod; times in seconds since the beginning."""

    def __init__(self, first: Entry, begin: float) -> None:
        self.first = first
        self.scheduler = first.object.get("spec", {}).get("schedulerName", "default-scheduler")
        created = first.object["metadata"].get("creationTimestamp")
        has_node = bool(first.object.get("spec", {}).get("nodeName"))
        self.was_bound = has_node and not (created and parse_time(created) >= begin)
        """Whether it had a node when the recording began. A recorder with delays sees new pods already bound."""
        self.bound: float | None = None
        self.ended: float | None = None

    @property
    def ran(self) -> float | None:
        """Seconds from binding to end, None if unknown."""
        return None if self.bound is None or self.ended is None else self.ended - self.bound


class Replay:
    """A recording that can be run."""

    name = ""

    def __init__(self, path: Path) -> None:
        """Read a recording; raises ObjectsError, OSError."""
        recording, self._path = read(path), path
        self._entries, self.begin = recording.changes, recording.begin
        self.is_ended = recording.is_ended
        self.duration = self.longest = recording.seconds + (0.0 if self.is_ended else _TAIL_SECONDS)
        self.sample = max(self.duration / _SAMPLES, 1.0)
        self._lives: dict[str, _Life] = {}
        self.bindings: dict[str, str] = {}
        """Recorded node of each pod, by namespace/name."""
        self._polled: dict[str, list[tuple[float, Any]]] = {}
        for entry in self._entries:
            if entry.op == "poll":
                self._polled.setdefault(entry.plugin, []).append((entry.time, entry.value))
            elif entry.object.get("kind") == "Pod":
                try:
                    self._note(entry)
                except ValueError as error:
                    raise ObjectsError([f"{path}: {name_of(entry.object)}: creationTimestamp: {error}"]) from None

    def _note(self, entry: Entry) -> None:
        metadata = entry.object["metadata"]
        life = self._lives.setdefault(metadata.get("uid", ""), _Life(entry, self.begin))
        node = entry.object.get("spec", {}).get("nodeName")
        if node and life.bound is None and not life.was_bound:
            life.bound = entry.time
            self.bindings[f"{metadata.get('namespace', 'default')}/{metadata['name']}"] = node
        done = entry.object.get("status", {}).get("phase") in _DONE
        if life.ended is None and (entry.op == "delete" or done):
            life.ended = entry.time

    def pods(self) -> tuple[int, int]:
        """Return how many pods are scheduled again, and how many keep the node that they had at the beginning."""
        kept = sum(life.was_bound for life in self._lives.values())
        return len(self._lives) - kept, kept

    def simulation(self, **settings: Any) -> Simulation:
        """Return a simulation of the recording; `settings` are fields of Settings. Raises ObjectsError."""
        overrides = {name: value for name, value in settings.items() if name != "seed" or value is not None}
        given = {"controllers": "none", "kubelets": False, **overrides}
        polled = given.get("polled", {})
        recorded = {name: values for name, values in self._polled.items() if name.partition(".")[0] not in polled}
        simulation = Simulation(**{**given, "polled": {**recorded, **polled}})
        simulation.plane.listeners.append(partial(self._on_change, simulation))
        for entry in self._entries:
            if entry.op == "poll" or not simulation.knows(entry.object):
                # Values are in the settings; kinds that no plugin declares make no difference.
                continue
            if entry.time:
                simulation.at(entry.time, partial(self._execute, entry))
                continue
            try:
                self._execute(entry, simulation)
            except ObjectsError:
                simulation.close()
                raise
        return simulation

    def __deepcopy__(self, memo: dict[int, Any]) -> "Replay":
        """Forks share a recording, which does not change."""
        return self

    def _execute(self, entry: Entry, simulation: Simulation) -> None:
        try:
            self._apply(entry, simulation)
        except ObjectError as error:
            raise ObjectsError([f"{self._path}: at {entry.time:g} s: {error}"]) from None

    def _apply(self, entry: Entry, simulation: Simulation) -> None:
        obj = entry.object
        if obj["kind"] == "Pod":
            self._apply_pod(entry, self._lives[obj["metadata"].get("uid", "")], simulation)
        elif entry.op == "put":
            simulation.put(obj)
        else:
            simulation.remove(obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", "default"))

    def _apply_pod(self, entry: Entry, life: _Life, simulation: Simulation) -> None:
        metadata = entry.object["metadata"]
        if life.scheduler not in simulation.core.profiles:
            # Repeat the decisions of the other scheduler.
            if entry.op == "put":
                simulation.put(entry.object)
            else:
                _end(metadata.get("uid", ""), metadata["name"], metadata.get("namespace", "default"), simulation)
        elif entry is life.first:
            if entry.op == "put" and life.ended != entry.time:
                simulation.put(entry.object if life.was_bound else _unbound(entry.object))
        elif life.ended == entry.time and life.bound is None:
            # It was never bound, or it was bound from the beginning: its recorded end applies.
            _end(metadata.get("uid", ""), metadata["name"], metadata.get("namespace", "default"), simulation)

    def _on_change(self, simulation: Simulation, object_id: tuple[type, str], old: Any, new: Any, _phase: str) -> None:
        if object_id[0] is not Pod or new is None or old is None:
            return
        life = self._lives.get(new.metadata.uid)
        end = partial(_end, new.metadata.uid, new.metadata.name, new.metadata.namespace)
        if new.metadata.deletionTimestamp is not None and old.metadata.deletionTimestamp is None:
            simulation.at(simulation.time + _STOP_SECONDS, end)
        elif new.spec.nodeName and not old.spec.nodeName and life is not None and life.ran is not None:
            simulation.at(simulation.time + life.ran, end)


def _unbound(pod: Object) -> Object:
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


def _end(uid: str, name: str, namespace: str, simulation: Simulation) -> None:
    current = simulation.get("Pod", name, namespace)
    if current is not None and current["metadata"]["uid"] == uid:
        simulation.remove("Pod", name, namespace)

"""DaemonSets: one pod on each node that wants it.

A pod is made for one node, by an affinity to its name; the scheduler places it. A visit looks at every node: where pods
are missing, too many or out of place. Then the roll-out replaces old pods, node by node or with a surge.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from kubestow.api.node_selector import required_node_affinity
from kubestow.api.pod import Pod
from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.controllers.history import HASH, History
from kubestow.apiserver.controllers.nodes import NOT_READY, UNREACHABLE, UNSCHEDULABLE, tolerates
from kubestow.apiserver.controllers.pods import Facts, Pods
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.controllers.rollout import share
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_SETS = "daemonsets.apps"
_COMPONENT = "daemonset-controller"
_BURST = 250
_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 900.0
_PREFIX = "node.kubernetes.io/"
_TOLERATIONS = [
    {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"},
    {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"},
    *(
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        for key in (f"{_PREFIX}disk-pressure", f"{_PREFIX}memory-pressure", f"{_PREFIX}pid-pressure", UNSCHEDULABLE)
    ),
]
_HOST_NETWORK = {"key": f"{_PREFIX}network-unavailable", "operator": "Exists", "effect": "NoSchedule"}


class _Look(NamedTuple):
    """One look at a set and all nodes."""

    owner: Object
    hash: str
    fits: dict[str, tuple[bool, bool]]
    """For each node: whether a pod shall run there, and whether one that does may stay."""
    pods: dict[str, list[Facts]]
    """Pods by the node they are made for, oldest first."""


class DaemonSets:
    """Looks after DaemonSets."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._api = pods.api
        self._history = History(pods.api)
        self._adoption = Adoption(pods.api, _SETS, "pods")
        self._taints: dict[str, tuple[int, list[Object]]] = {}
        self._backoff: dict[tuple[str, str], tuple[float, float]] = {}

    def sources(self) -> dict[str, KeysOf]:
        """Follows the sets, their pods, and nodes whose labels or taints change."""
        return {_SETS: self._adoption.of_owner, "pods": self._adoption.of_owned, "nodes": self._of_node}

    def _of_node(self, change: Change) -> Iterable[Key]:
        before = self._taints.get(change.record.name)
        labels = change.previous.labels if change.previous is not None else None
        if change.type == "DELETED":
            self._taints.pop(change.record.name, None)
        elif labels == change.record.labels and before and before[1] == self._taints_of(change.record):
            return ()
        return list(self._api.store.collection(_SETS).objects)

    def _taints_of(self, node: Record) -> list[Object]:
        known = self._taints.get(node.name)
        if known is None or known[0] != node.rv:
            found = node.object().get("spec", {}).get("taints", [])
            taints = [one for one in found if one["effect"] in ("NoSchedule", "NoExecute")]
            known = self._taints[node.name] = (node.rv, taints)
        return known[1]

    def visit(self, key: Key) -> float | None:
        """Takes the next step of one set."""
        record = self._api.store.get(_SETS, *key)
        if record is None:
            return None
        self._adoption.settle(record)
        owner = record.object()
        revisions = self._history.revisions(owner)
        look = self._look(owner, revisions[-1].hash)
        again = None
        if "deletionTimestamp" not in owner["metadata"]:
            again = self._manage(look)
            if owner["spec"]["updateStrategy"]["type"] == "RollingUpdate":
                look = self._look(owner, look.hash, look.fits)
                again = _sooner(again, self._roll(look))
            look = self._look(owner, look.hash, look.fits)
        waiting = self._report(look)
        used = {pod.record.labels.get(HASH, "") for pods in look.pods.values() for pod in pods}
        self._history.forget_old(owner, revisions, used)
        return _sooner(again, waiting)

    def _look(self, owner: Object, digest: str, fits: dict[str, tuple[bool, bool]] | None = None) -> _Look:
        pods: dict[str, list[Facts]] = {}
        for pod in self._pods.owned_by(owner["metadata"]["uid"]):
            pods.setdefault(pod.target, []).append(pod)
        for here in pods.values():
            here.sort(key=lambda pod: (not pod.node, pod.created))
        return _Look(owner, digest, self._fits(owner) if fits is None else fits, pods)

    def _fits(self, owner: Object) -> dict[str, tuple[bool, bool]]:
        spec = owner["spec"]["template"].get("spec", {})
        wanted = required_node_affinity(msgspec.convert({"metadata": {"name": "x"}, "spec": spec}, Pod))
        bears = [*spec.get("tolerations", ()), *_tolerations(spec)]
        named = spec.get("nodeName")
        found = {}
        for node in self._api.store.collection("nodes").objects.values():
            if (named and named != node.name) or not wanted.matches(node.labels, node.name):
                found[node.name] = (False, False)
                continue
            effects = {
                taint["effect"] for taint in self._taints_of(node) if not any(tolerates(one, taint) for one in bears)
            }
            found[node.name] = (not effects, "NoExecute" not in effects)
        return found

    # Pods that are missing, too many or out of place

    def _manage(self, look: _Look) -> float | None:
        again: float | None = None
        missing: list[str] = []
        surplus: list[Facts] = []
        for name, (run, stay) in look.fits.items():
            pods = look.pods.get(name)
            if pods is None:
                missing += [name] if run else []
                continue
            alive = [pod for pod in pods if not pod.deleting]
            if not stay:
                surplus += alive
                continue
            running = []
            for pod in alive:
                if pod.active:
                    running.append(pod)
                    continue
                wait = self._may_replace(look.owner, name, pod)
                if wait:
                    again = _sooner(again, wait)
                else:
                    surplus.append(pod)
            surplus += self._doubles(look, running)
            if _surge(look) and run and not running and len(alive) == 0:
                missing.append(name)
        for name, pods in look.pods.items():
            if name not in look.fits:
                surplus += [pod for pod in pods if not pod.node and not pod.deleting]
        return _sooner(again, self._change(look, surplus, missing))

    def _doubles(self, look: _Look, running: list[Facts]) -> list[Facts]:
        """All but the oldest; with a surge an old and a new one may be there until the new one is available."""
        if not _surge(look):
            return running[1:]
        new = [pod for pod in running if pod.record.labels.get(HASH) == look.hash]
        old = [pod for pod in running if pod.record.labels.get(HASH) != look.hash]
        surplus = new[1:] + old[1:]
        if new and old and (not old[0].ready or self._is_available(look, new[0])):
            surplus.append(old[0])
        return surplus

    def _may_replace(self, owner: Object, node: str, pod: Facts) -> float:
        """In how many seconds a finished pod may be replaced: soon at first, later when it keeps failing."""
        name, where = owner["metadata"]["uid"], f"{pod.record.namespace}/{pod.name} on node {node}"
        if pod.phase == "Succeeded":
            message = f"Found succeeded daemon pod {where}, will try to delete it"
            self._api.event(_COMPONENT, owner, "SucceededDaemonPod", message)
            return 0.0
        delay, since = self._backoff.get((name, node), (0.0, 0.0))
        now = self._api.now()
        if now - since < delay:
            return since + delay - now
        fresh = now - since > 2 * _LONGEST_BACKOFF
        self._backoff[(name, node)] = (
            _FIRST_BACKOFF if fresh or not delay else min(2 * delay, _LONGEST_BACKOFF), now
        )  # fmt: skip
        self._api.event(
            _COMPONENT, owner, "FailedDaemonPod", f"Found failed daemon pod {where}, will try to kill it", "Warning"
        )
        return 0.0

    # Roll-outs

    def _roll(self, look: _Look) -> float | None:
        wanted = [name for name, (run, _) in look.fits.items() if run]
        rolling = look.owner["spec"]["updateStrategy"].get("rollingUpdate", {})
        surge = share(rolling.get("maxSurge", 0), len(wanted), up=True)
        may_miss = share(rolling.get("maxUnavailable", 1), len(wanted), up=True)
        nodes = dict.fromkeys([*wanted, *(name for name in look.pods if name in look.fits)])
        if surge:
            return self._roll_with_surge(look, list(nodes), surge)
        missing, free, candidates = 0, [], []
        for name in nodes:
            alive = [pod for pod in look.pods.get(name, ()) if not pod.deleting]
            if len(alive) != 1:
                missing += 1
            elif alive[0].record.labels.get(HASH) == look.hash:
                missing += not self._is_available(look, alive[0])
            elif self._is_available(look, alive[0]):
                candidates.append(alive[0])
            else:
                free.append(alive[0])
                missing += 1
        return self._change(look, free + candidates[: max(0, max(1, may_miss) - missing)], [])

    def _roll_with_surge(self, look: _Look, nodes: list[str], surge: int) -> float | None:
        surging, leaving = 0, []
        now: list[str] = []
        candidates: list[str] = []
        for name in nodes:
            alive = [pod for pod in look.pods.get(name, ()) if not pod.deleting]
            new = [pod for pod in alive if pod.record.labels.get(HASH) == look.hash]
            old = [pod for pod in alive if pod.record.labels.get(HASH) != look.hash]
            if len(new) > 1 or len(old) > 1:
                surging += 1
            elif old and new:
                if self._is_available(look, new[0]):
                    leaving.append(old[0])
                else:
                    surging += 1
            elif old and look.fits[name][0]:
                (candidates if self._is_available(look, old[0]) else now).append(name)
            elif old and not self._is_available(look, old[0]):
                leaving.append(old[0])
        return self._change(look, leaving, now + candidates[: max(0, surge - surging)])

    def _is_available(self, look: _Look, pod: Facts) -> bool:
        return pod.available_in(look.owner["spec"].get("minReadySeconds", 0), self._api.now()) == 0

    def _change(self, look: _Look, surplus: list[Facts], missing: list[str]) -> float | None:
        """Deletes and creates pods, some at a time; returns when to go on."""
        for pod in surplus[:_BURST]:
            self._pods.delete(_COMPONENT, look.owner, pod)
        for node in missing[:_BURST]:
            self._create(look, node)
        return 0.0 if max(len(surplus), len(missing)) > _BURST else None

    def _create(self, look: _Look, node: str) -> None:
        def alter(pod: Object) -> None:
            spec = pod["spec"]
            pod["metadata"]["labels"][HASH] = look.hash
            spec["tolerations"] = [*spec.get("tolerations", ()), *_missing(spec)]
            field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            affinity = {**spec.get("affinity", {})}
            required = {"nodeSelectorTerms": [field]}
            key = "requiredDuringSchedulingIgnoredDuringExecution"
            affinity["nodeAffinity"] = {**affinity.get("nodeAffinity", {}), key: required}
            spec["affinity"] = affinity

        name = look.owner["metadata"]["name"]
        self._pods.create(_COMPONENT, look.owner, look.owner["spec"]["template"], f"{name}-", alter)

    # Status

    def _report(self, look: _Look) -> float | None:
        owner = look.owner
        desired = current = out_of_place = ready = available = updated = 0
        waits = []
        for name, (run, _) in look.fits.items():
            pods = look.pods.get(name)
            desired += run
            if not pods or not run:
                out_of_place += bool(pods)
                continue
            current += 1
            pod = pods[0]
            updated += pod.record.labels.get(HASH) == look.hash
            if pod.ready:
                ready += 1
                wait = pod.available_in(owner["spec"].get("minReadySeconds", 0), self._api.now())
                available += wait == 0
                waits += [wait] if wait else []
        status: Object = {
            "currentNumberScheduled": current,
            "numberMisscheduled": out_of_place,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        more = (
            ("updatedNumberScheduled", updated),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        )
        status |= {name: count for name, count in more if count}
        self._api.set_status(_SETS, owner, status)
        return min(waits, default=None)


def _surge(look: _Look) -> bool:
    rolling = look.owner["spec"]["updateStrategy"].get("rollingUpdate", {})
    return rolling.get("maxSurge", 0) not in (0, "0%")


def _tolerations(spec: Object) -> list[Object]:
    return [*_TOLERATIONS, _HOST_NETWORK] if spec.get("hostNetwork") else _TOLERATIONS


def _missing(spec: Object) -> list[Object]:
    have = [(one.get("key"), one.get("effect")) for one in spec.get("tolerations", ())]
    return [one for one in _tolerations(spec) if (one["key"], one["effect"]) not in have]


def _sooner(first: float | None, second: float | None) -> float | None:
    given = [one for one in (first, second) if one is not None]
    return min(given, default=None)

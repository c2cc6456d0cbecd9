"""DaemonSets: one pod on each eligible node.

A pod is created for one node, with an affinity to its name; the scheduler binds it. Each reconciliation finds the nodes
with missing, surplus or misplaced pods; then the rollout replaces old pods, node by node or with a surge.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from kubestow.api.codec import convert, decode
from kubestow.api.node import Node, Taint
from kubestow.api.node_selector import required_node_affinity
from kubestow.api.pod import Pod, Toleration
from kubestow.api.tolerations import REPELLING, untolerated
from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.controllers.history import HASH, History
from kubestow.apiserver.controllers.nodes import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from kubestow.apiserver.controllers.pods import Facts, Pods
from kubestow.apiserver.controllers.rollout import share
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.config.features import Features

_SETS = "daemonsets.apps"
_COMPONENT = "daemonset-controller"
_BURST = 250
_EVICTING = ("NoExecute",)
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


class _View(NamedTuple):
    """The state of a set and of all nodes."""

    owner: Object
    hash: str
    fits: dict[str, tuple[bool, bool]]
    """For each node: whether a pod should run there, and whether a running one may continue."""
    pods: dict[str, list[Facts]]
    """Pods by the node they were created for, oldest first."""


class DaemonSets:
    """Creates, replaces and deletes the pods of DaemonSets."""

    def __init__(self, pods: Pods, features: Features) -> None:
        self._pods = pods
        self._compares = features.taint_toleration_comparison_operators
        self._api = pods.api
        self._history = History(pods.api)
        self._adoption = Adoption(pods.api, _SETS, "pods")
        self._taints: dict[str, tuple[int, tuple[Taint, ...]]] = {}
        self._backoff: dict[tuple[str, str], tuple[float, float]] = {}
        self.sources = {_SETS: self._adoption.owner_keys, "pods": self._adoption.owned_keys, "nodes": self._node_keys}

    def _node_keys(self, change: Change) -> Iterable[Key]:
        before = self._taints.get(change.record.name)
        labels = change.previous.labels if change.previous is not None else None
        if change.type == "DELETED":
            self._taints.pop(change.record.name, None)
        elif labels == change.record.labels and before and before[1] == self._taints_of(change.record):
            return ()
        return list(self._api.store.collection(_SETS).objects)

    def _taints_of(self, node: Record) -> tuple[Taint, ...]:
        known = self._taints.get(node.name)
        if known is None or known[0] != node.rv:
            known = self._taints[node.name] = (node.rv, decode(Node, node.body).spec.taints)
        return known[1]

    def reconcile(self, key: Key) -> float | None:
        """Perform the next step of one set, and update its status."""
        record = self._api.store.get(_SETS, *key)
        if record is None:
            return None
        self._adoption.apply(record)
        owner = record.object()
        revisions = self._history.revisions(owner)
        view = self._observe(owner, revisions[-1].hash)
        again = None
        if "deletionTimestamp" not in owner["metadata"]:
            again = self._manage(view)
            if owner["spec"]["updateStrategy"]["type"] == "RollingUpdate":
                view = self._observe(owner, view.hash, view.fits)
                again = _earliest(again, self._roll(view))
            view = self._observe(owner, view.hash, view.fits)
        waiting = self._report(view)
        used = {pod.record.labels.get(HASH, "") for pods in view.pods.values() for pod in pods}
        self._history.prune(owner, revisions, used)
        return _earliest(again, waiting)

    def _observe(self, owner: Object, digest: str, fits: dict[str, tuple[bool, bool]] | None = None) -> _View:
        pods: dict[str, list[Facts]] = {}
        for pod in self._pods.owned_by(owner["metadata"]["uid"]):
            pods.setdefault(pod.target, []).append(pod)
        for here in pods.values():
            here.sort(key=lambda pod: (not pod.node, pod.created))
        return _View(owner, digest, self._fits(owner) if fits is None else fits, pods)

    def _fits(self, owner: Object) -> dict[str, tuple[bool, bool]]:
        spec = owner["spec"]["template"].get("spec", {})
        wanted = required_node_affinity(msgspec.convert({"metadata": {"name": "x"}, "spec": spec}, Pod))
        given = convert(tuple[Toleration, ...], [*spec.get("tolerations", ()), *_tolerations(spec)])
        named = spec.get("nodeName")
        found = {}
        for node in self._api.store.collection("nodes").objects.values():
            if (named and named != node.name) or not wanted.matches(node.labels, node.name):
                found[node.name] = (False, False)
                continue
            taints = self._taints_of(node)
            run, stay = (untolerated(taints, given, which, self._compares) is None for which in (REPELLING, _EVICTING))
            found[node.name] = (run, stay)
        return found

    # Missing, surplus and misplaced pods

    def _manage(self, view: _View) -> float | None:
        again: float | None = None
        missing: list[str] = []
        surplus: list[Facts] = []
        for name, (run, stay) in view.fits.items():
            pods = view.pods.get(name)
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
                wait = self._replacement_delay(view.owner, name, pod)
                if wait:
                    again = _earliest(again, wait)
                else:
                    surplus.append(pod)
            surplus += self._duplicates(view, running)
            if _surge(view) and run and not running and len(alive) == 0:
                missing.append(name)
        for name, pods in view.pods.items():
            if name not in view.fits:
                surplus += [pod for pod in pods if not pod.node and not pod.deleting]
        return _earliest(again, self._change(view, surplus, missing))

    def _duplicates(self, view: _View, running: list[Facts]) -> list[Facts]:
        """Return all pods but the oldest; with a surge, an old and a new one until the new one is available."""
        if not _surge(view):
            return running[1:]
        new = [pod for pod in running if pod.record.labels.get(HASH) == view.hash]
        old = [pod for pod in running if pod.record.labels.get(HASH) != view.hash]
        surplus = new[1:] + old[1:]
        if new and old and (not old[0].ready or self._is_available(view, new[0])):
            surplus.append(old[0])
        return surplus

    def _replacement_delay(self, owner: Object, node: str, pod: Facts) -> float:
        """Return the seconds until a finished pod may be replaced, with exponential backoff if it fails repeatedly."""
        uid, where = owner["metadata"]["uid"], f"{pod.record.namespace}/{pod.name} on node {node}"
        if pod.phase == "Succeeded":
            message = f"Found succeeded daemon pod {where}, will try to delete it"
            self._api.event(_COMPONENT, owner, "SucceededDaemonPod", message)
            return 0.0
        delay, since = self._backoff.get((uid, node), (0.0, 0.0))
        now = self._api.now()
        if now - since < delay:
            return since + delay - now
        expired = now - since > 2 * _LONGEST_BACKOFF
        self._backoff[(uid, node)] = (
            _FIRST_BACKOFF if expired or not delay else min(2 * delay, _LONGEST_BACKOFF), now
        )  # fmt: skip
        self._api.event(
            _COMPONENT, owner, "FailedDaemonPod", f"Found failed daemon pod {where}, will try to kill it", "Warning"
        )
        return 0.0

    # Rollouts

    def _roll(self, view: _View) -> float | None:
        wanted = [name for name, (run, _) in view.fits.items() if run]
        rolling = view.owner["spec"]["updateStrategy"].get("rollingUpdate", {})
        surge = share(rolling.get("maxSurge", 0), len(wanted), up=True)
        max_unavailable = share(rolling.get("maxUnavailable", 1), len(wanted), up=True)
        nodes = dict.fromkeys([*wanted, *(name for name in view.pods if name in view.fits)])
        if surge:
            return self._roll_with_surge(view, list(nodes), surge)
        missing, free, candidates = 0, [], []
        for name in nodes:
            alive = [pod for pod in view.pods.get(name, ()) if not pod.deleting]
            if len(alive) != 1:
                missing += 1
            elif alive[0].record.labels.get(HASH) == view.hash:
                missing += not self._is_available(view, alive[0])
            elif self._is_available(view, alive[0]):
                candidates.append(alive[0])
            else:
                free.append(alive[0])
                missing += 1
        return self._change(view, free + candidates[: max(0, max(1, max_unavailable) - missing)], [])

    def _roll_with_surge(self, view: _View, nodes: list[str], surge: int) -> float | None:
        surging, leaving = 0, []
        now: list[str] = []
        candidates: list[str] = []
        for name in nodes:
            alive = [pod for pod in view.pods.get(name, ()) if not pod.deleting]
            new = [pod for pod in alive if pod.record.labels.get(HASH) == view.hash]
            old = [pod for pod in alive if pod.record.labels.get(HASH) != view.hash]
            if len(new) > 1 or len(old) > 1:
                surging += 1
            elif old and new:
                if self._is_available(view, new[0]):
                    leaving.append(old[0])
                else:
                    surging += 1
            elif old and view.fits[name][0]:
                (candidates if self._is_available(view, old[0]) else now).append(name)
            elif old and not self._is_available(view, old[0]):
                leaving.append(old[0])
        return self._change(view, leaving, now + candidates[: max(0, surge - surging)])

    def _is_available(self, view: _View, pod: Facts) -> bool:
        return pod.available_in(view.owner["spec"].get("minReadySeconds", 0), self._api.now()) == 0

    def _change(self, view: _View, surplus: list[Facts], missing: list[str]) -> float | None:
        """Delete and create a batch of pods; return 0 if there are more, else None."""
        for pod in surplus[:_BURST]:
            self._pods.delete(_COMPONENT, view.owner, pod)
        for node in missing[:_BURST]:
            self._create(view, node)
        return 0.0 if max(len(surplus), len(missing)) > _BURST else None

    def _create(self, view: _View, node: str) -> None:
        def alter(pod: Object) -> None:
            spec = pod["spec"]
            pod["metadata"]["labels"][HASH] = view.hash
            given = [(one.get("key"), one.get("effect")) for one in spec.get("tolerations", ())]
            missing = [one for one in _tolerations(spec) if (one["key"], one["effect"]) not in given]
            spec["tolerations"] = [*spec.get("tolerations", ()), *missing]
            field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            affinity = {**spec.get("affinity", {})}
            required = {"nodeSelectorTerms": [field]}
            key = "requiredDuringSchedulingIgnoredDuringExecution"
            affinity["nodeAffinity"] = {**affinity.get("nodeAffinity", {}), key: required}
            spec["affinity"] = affinity

        name = view.owner["metadata"]["name"]
        self._pods.create(_COMPONENT, view.owner, view.owner["spec"]["template"], f"{name}-", alter)

    # Status

    def _report(self, view: _View) -> float | None:
        owner = view.owner
        desired = current = misplaced = ready = available = updated = 0
        waits = []
        for name, (run, _) in view.fits.items():
            pods = view.pods.get(name)
            desired += run
            if not pods or not run:
                misplaced += bool(pods)
                continue
            current += 1
            pod = pods[0]
            updated += pod.record.labels.get(HASH) == view.hash
            if pod.ready:
                ready += 1
                wait = pod.available_in(owner["spec"].get("minReadySeconds", 0), self._api.now())
                available += wait == 0
                waits += [wait] if wait else []
        status: Object = {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
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


def _surge(view: _View) -> bool:
    rolling = view.owner["spec"]["updateStrategy"].get("rollingUpdate", {})
    return rolling.get("maxSurge", 0) not in (0, "0%")


def _tolerations(spec: Object) -> list[Object]:
    return [*_TOLERATIONS, _HOST_NETWORK] if spec.get("hostNetwork") else _TOLERATIONS


def _earliest(first: float | None, second: float | None) -> float | None:
    given = [one for one in (first, second) if one is not None]
    return min(given, default=None)

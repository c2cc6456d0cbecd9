"""Nodes: taints that follow their condition, and pods that have to leave them."""

import time
from collections.abc import Iterable
from typing import Any

from kubestow.apiserver import clock
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_MANAGED = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()}
_QUARANTINE_SECONDS = 5.0
_NODE_FIELD = BY_STORAGE["pods"].selectable_fields.index("spec.nodeName")


class Nodes:
    """Looks after nodes; a key is a node's name."""

    def __init__(self, store: Store, writer: Writer, remover: Remover) -> None:
        self._store = store
        self._writer = writer
        self._remover = remover
        self._pods_on: dict[str, set[Key]] = {}
        self._missing_since: dict[str, float] = {}

    def sources(self) -> dict[str, KeysOf]:
        """Follows nodes, and which pods are on them."""
        return {"nodes": own_key, "pods": self._track}

    def _track(self, change: Change) -> Iterable[Key]:
        record = change.record
        node = record.fields[_NODE_FIELD]
        if not node:
            return ()
        here = self._pods_on.setdefault(node, set())
        if change.type == "DELETED":
            here.discard((record.namespace, record.name))
            if not here:
                del self._pods_on[node]
            return ()
        if (record.namespace, record.name) in here:
            return ()
        here.add((record.namespace, record.name))
        return (("", node),)

    def visit(self, key: Key) -> float | None:
        """Sets taints; deletes pods that do not bear them, or whose node is gone."""
        name = key[1]
        record = self._store.get("nodes", "", name)
        if record is None:
            return self._bury(name)
        self._missing_since.pop(name, None)
        node = record.object()
        taints = _taints(node)
        if taints != node.get("spec", {}).get("taints", []):

            def change(current: Object) -> Object:
                spec = current.setdefault("spec", {})
                if taints:
                    spec["taints"] = taints
                else:
                    spec.pop("taints", None)
                return current

            self._writer.update(BY_STORAGE["nodes"], "", name, change, internal())
        driving = [taint for taint in taints if taint["effect"] == "NoExecute"]
        return self._drive_out(name, driving) if driving else None

    def _bury(self, name: str) -> float | None:
        """Deletes pods of a node that has been missing for a while; it may only be late."""
        left = self._missing_since.setdefault(name, time.monotonic()) + _QUARANTINE_SECONDS - time.monotonic()
        if left > 0:
            return left
        del self._missing_since[name]
        for pod in self._pods(name):
            self._delete(pod, grace=0)
        return None

    def _pods(self, node: str) -> list[Record]:
        found = [self._store.get("pods", *key) for key in sorted(self._pods_on.get(node, ()))]
        return [record for record in found if record is not None]

    def _drive_out(self, node: str, taints: list[Object]) -> float | None:
        """Deletes pods that do not bear the taints, now or when their patience ends; returns when to look again."""
        soonest: float | None = None
        for record in self._pods(node):
            pod = record.object()
            if "deletionTimestamp" in pod["metadata"]:
                continue
            wait = min(_patience(pod, taint) for taint in taints)
            if wait <= 0:
                self._delete(record)
            elif wait != float("inf"):
                soonest = wait if soonest is None else min(soonest, wait)
        return soonest

    def _delete(self, record: Record, grace: int | None = None) -> None:
        options = DeleteOptions(grace_seconds=grace, uid=record.uid)
        self._remover.delete(BY_STORAGE["pods"], record.namespace, record.name, options, internal())


def _patience(pod: Object, taint: Object) -> float:
    """For how many more seconds a pod bears a taint."""
    spans = [
        toleration.get("tolerationSeconds", float("inf"))
        for toleration in pod["spec"].get("tolerations", ())
        if _tolerates(toleration, taint)
    ]
    if not spans:
        return 0.0
    since = clock.seconds(taint["timeAdded"]) if taint.get("timeAdded") else time.time()
    return float(since + min(spans) - time.time())


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key") and toleration.get("value", "") == taint.get("value", ""))


def _taints(node: Object) -> list[Object]:
    """A node's taints: those people set, and those that follow from its state."""
    spec = node.get("spec", {})
    current: list[Object] = spec.get("taints", [])
    wanted: list[tuple[str, str]] = []
    conditions = {one["type"]: one.get("status") for one in node.get("status", {}).get("conditions", ())}
    ready = conditions.get("Ready")
    if ready in ("False", "Unknown"):
        key = NOT_READY if ready == "False" else UNREACHABLE
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    for condition, key in _PRESSURES.items():
        if conditions.get(condition) == "True":
            wanted.append((key, "NoSchedule"))
    if spec.get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    kept = [taint for taint in current if taint["key"] not in _MANAGED or (taint["key"], taint["effect"]) in wanted]
    present = {(taint["key"], taint["effect"]) for taint in kept}
    for key, effect in wanted:
        if (key, effect) not in present:
            taint: Object = {"key": key, "effect": effect}
            if effect == "NoExecute":
                taint["timeAdded"] = clock.now()
            kept.append(taint)
    return kept

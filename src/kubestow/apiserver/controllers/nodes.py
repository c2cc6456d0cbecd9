"""Nodes: conditions of nodes without heartbeats, taints derived from conditions, and eviction of pods by taints."""

import re
from collections.abc import Iterable

from kubestow.api.codec import convert
from kubestow.api.node import Taint
from kubestow.api.pod import Toleration
from kubestow.api.timestamps import parse_time
from kubestow.api.tolerations import tolerates
from kubestow.apiserver.controllers.api import Api, Object, condition_of, set_condition
from kubestow.apiserver.controllers.pods import DONE, NODE, PHASE, Pods
from kubestow.apiserver.controllers.queue import own_key
from kubestow.apiserver.rules import pods as pod_rules
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.config.features import Features

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
_LEASES = "leases.coordination.k8s.io"
_RENEWED = re.compile(rb'"renewTime":"([^"]*)"')
_GRACE_SECONDS = 50.0


class NodeLifecycle:
    """Sets the conditions and taints of nodes; a key is a node's name."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._api = pods.api
        self._reconciled: dict[str, int] = {}
        """Versions of nodes that are already reconciled, by name."""
        self.sources = {"nodes": own_key, _LEASES: self._lease_keys}

    def _lease_keys(self, change: Change) -> Iterable[Key]:
        new = change.record.namespace == "kube-node-lease" and change.type == "ADDED"
        return (("", change.record.name),) if new else ()

    def reconcile(self, key: Key) -> float | None:
        """Mark a node without heartbeats as unknown, set its taints; return the seconds until a heartbeat is late."""
        record = self._api.store.get("nodes", "", key[1])
        if record is None:
            self._reconciled.pop(key[1], None)
            return None
        again = self._heartbeat_deadline(key[1])
        if again is not None and again > 0 and self._reconciled.get(key[1]) == record.rv:
            return again
        node = record.object()
        if again is not None and again <= 0:
            node = self._mark_unknown(node)
        taints = self._taints(node)
        if taints != node.get("spec", {}).get("taints", []):

            def alter(current: Object) -> None:
                spec = current.setdefault("spec", {})
                spec["taints"] = taints
                if not taints:
                    del spec["taints"]

            self._api.update("nodes", "", key[1], alter)
        ready = condition_of(node, "Ready")
        if ready is not None and ready.get("status") != "True":
            self._mark_pods(node)
        self._reconciled[key[1]] = record.rv
        return again if again is not None and again > 0 else None

    def _heartbeat_deadline(self, name: str) -> float | None:
        """Return the seconds until a node's heartbeat is late; None if it never sent one."""
        lease = self._api.store.get(_LEASES, "kube-node-lease", name)
        found = _RENEWED.search(lease.body) if lease is not None else None
        return parse_time(found[1].decode()) + _GRACE_SECONDS - self._api.now() if found else None

    def _mark_unknown(self, node: Object) -> Object:
        """Set the conditions of a node without heartbeats to Unknown; return the node."""
        ready = condition_of(node, "Ready")
        if ready is not None and ready.get("status") == "Unknown":
            return node
        conditions = [dict(one) for one in node.get("status", {}).get("conditions", ())]
        types = dict.fromkeys([one["type"] for one in conditions if one["type"] != "NetworkUnavailable"])
        for type_ in (*types, *(() if "Ready" in types else ("Ready",))):
            message, now = "Kubelet stopped posting node status.", self._api.store.now()
            beat = next((one.get("lastHeartbeatTime", now) for one in conditions if one["type"] == type_), now)
            set_condition(conditions, type_, "Unknown", "NodeStatusUnknown", message, now, lastHeartbeatTime=beat)
        self._api.set_status("nodes", node, {**node.get("status", {}), "conditions": conditions})
        message = f"Node {node['metadata']['name']} status is now: NodeNotReady"
        self._api.event("node-controller", node, "NodeNotReady", message)
        return self._api.read("nodes", "", node["metadata"]["name"]) or node

    def _mark_pods(self, node: Object) -> None:
        """Mark the pods of a node that is not ready as not ready."""
        for record in self._pods.on_node(node["metadata"]["name"]):
            if self._pods.facts(record).ready:

                def alter(pod: Object) -> None:
                    pod_rules.set_condition(pod, "Ready", "False", self._api.store.now())

                pod = self._api.update("pods", record.namespace, record.name, alter, sub="status").object()
                self._api.event("node-controller", pod, "NodeNotReady", "Node is not ready", "Warning")

    def _taints(self, node: Object) -> list[Object]:
        """Return a node's taints: those set by users, and those derived from its conditions."""
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
                    taint["timeAdded"] = self._api.store.now()
                kept.append(taint)
        return kept


class TaintEviction:
    """Deletes pods that do not tolerate a NoExecute taint of their node; a key is a node's name."""

    def __init__(self, pods: Pods, features: Features) -> None:
        self._pods = pods
        self._api: Api = pods.api
        self._compares = features.taint_toleration_comparison_operators
        self._since: dict[str, float] = {}
        self.sources = {"nodes": self._node_keys, "pods": self._pod_keys}

    def _node_keys(self, change: Change) -> Iterable[Key]:
        records = (change.record, change.previous) if change.type != "DELETED" else ()
        tainted = any(record is not None and b'"NoExecute"' in record.body for record in records)
        return (("", change.record.name),) if tainted else ()

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        name = change.record.fields[NODE]
        if change.type == "DELETED":
            self._since.pop(change.record.uid, None)
        elif name and (change.previous is None or change.previous.fields[NODE] != name):
            node = self._api.store.get("nodes", "", name)
            if node is not None and b'"NoExecute"' in node.body:
                return (("", name),)
        return ()

    def reconcile(self, key: Key) -> float | None:
        """Delete the pods whose toleration has expired; return the seconds until the next one expires."""
        node = self._api.read("nodes", "", key[1])
        taints = [one for one in (node or {}).get("spec", {}).get("taints", ()) if one["effect"] == "NoExecute"]
        pods = self._pods.on_node(key[1])
        if not taints:
            for record in pods:
                self._since.pop(record.uid, None)
        waits = [self._evict_or_wait(record, taints) for record in pods] if taints else []
        return min((wait for wait in waits if wait != float("inf")), default=None)

    def _evict_or_wait(self, record: Record, taints: list[Object]) -> float:
        """Delete a pod if its toleration has expired; return the seconds left, else infinity."""
        if b'"deletionTimestamp":"' in record.body or record.fields[PHASE] in DONE:
            return float("inf")
        pod = record.object()
        given = convert(tuple[Toleration, ...], pod["spec"].get("tolerations", ()))
        ends = []
        for taint in taints:
            matching = [one for one in given if tolerates(one, convert(Taint, taint), self._compares)]
            spans = [float("inf") if one.tolerationSeconds is None else one.tolerationSeconds for one in matching]
            if taint.get("timeAdded"):
                since = max(parse_time(taint["timeAdded"]), parse_time(pod["metadata"]["creationTimestamp"]))
            else:
                since = self._since.setdefault(record.uid, self._api.now())
            ends.append(since + min(spans) if spans else 0.0)
        left = min(ends) - self._api.now()
        if left > 0:
            return left
        name = f"{record.namespace}/{record.name}"
        self._api.event("taint-eviction-controller", pod, "TaintManagerEviction", f"Marking for deletion Pod {name}")
        message = "Taint manager: deleting due to NoExecute taint"
        self._pods.disrupt(record, "DeletionByTaintManager", message)
        return float("inf")

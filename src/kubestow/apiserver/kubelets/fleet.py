"""All simulated kubelets as one controller, whose keys are pods and nodes.

There is no task per node. Reconciling a pod advances its life to the current time and writes the changes; the pod is
reconciled again at the next change. Heartbeats are renewed in batches, directly in the store. An idle fleet costs only
its heartbeats; without them it costs nothing, and a node has a lease only while it is unreachable, since that time.

Annotations of a node: with `kubestow.dev/ready: "false"` its kubelet reports that it is not ready, and stops acting;
with `"unknown"` it stops without a report. `kubestow.dev/shutdown: "true"` shuts it down: its pods are stopped.
"""

import itertools
import re
from collections.abc import Iterable
from functools import partial

from kubestow.api.timestamps import format_micro_time
from kubestow.apiserver.controllers.api import Object, condition_of, has_condition
from kubestow.apiserver.controllers.claims import consumers
from kubestow.apiserver.controllers.pods import DONE, NODE, PHASE, Pods
from kubestow.apiserver.kubelets import admission, claims, lifecycles, resizing, statuses
from kubestow.apiserver.kubelets.lifecycles import NEVER, PodLifecycle
from kubestow.apiserver.kubelets.scripts import Pace, Script
from kubestow.apiserver.rules.pods import set_condition
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_ANNOTATION = re.compile(rb'"kubestow\.dev/(ready|shutdown)":"(false|unknown|true)"')
_NOT_READY_MESSAGES = {b"false": "set to not ready by annotation", b"shutdown": "node is shutting down"}
_LEASES = "leases.coordination.k8s.io"
_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_RENEW_SECONDS = 10.0
_RENEW_SLICES = 20
_RENEWAL = ("", "")
_GENERATION = re.compile(rb'"generation":(\d+)')
_VERSION = re.compile(rb'"resourceVersion":"\d+"')
_RENEWED = re.compile(rb'"renewTime":"[^"]*"')
_CAPACITY = re.compile(rb'"capacity":\{[^}]*\}')


def _capacity(node: Record) -> bytes:
    """Return the encoded capacity of a node, without decoding the node."""
    found = _CAPACITY.search(node.body)
    return found[0] if found else b""


def _renewed(body: bytes, renewal: bytes, rv: int) -> bytes:
    """Return an encoded lease with another time and version, without decoding it."""
    return _VERSION.sub(b'"resourceVersion":"%d"' % rv, _RENEWED.sub(renewal, body, count=1), count=1)


class Fleet:
    """The kubelets of all nodes; keys are those of pods, of nodes (without a namespace), and the renewal of leases."""

    def __init__(self, pods: Pods, pace: Pace, *, heartbeats: bool = True) -> None:
        self._pods = pods
        self._heartbeats = heartbeats
        self._api = pods.api
        self._store = pods.api.store
        self._pace = pace
        self._states: dict[str, bytes] = {}
        """The states of nodes set by annotations: true, false, unknown or shutdown."""
        self._resized_nodes: set[str] = set()
        """Nodes whose capacity was changed by a user."""
        self._lifecycles: dict[str, PodLifecycle] = {}
        """The lifecycles of pods with a pending change, by UID."""
        self._idle: dict[str, int] = {}
        """Versions of pods without a pending change, by UID."""
        self._allocated: dict[str, dict[str, Object]] = {}
        """Resources that the containers of a pod had before its spec changed, by UID."""
        self._deferred: dict[str, dict[Key, str]] = {}
        """Pods whose resize waits for free capacity, by node."""
        self._addresses = statuses.Addresses()
        self._slice = 0
        self.sources = {"nodes": self._node_keys, "pods": self._pod_keys, claims.CLAIMS: self._claim_keys}

    def reconcile(self, key: Key) -> float | None:
        """Act for one pod or one node, or renew leases."""
        if key == _RENEWAL:
            return self._renew()
        return self._reconcile_pod(key) if key[0] else self._reconcile_node(key[1])

    # Nodes

    def _node_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        if change.type == "DELETED":
            self._states.pop(record.name, None)
            return (("", record.name),)
        annotations = dict(_ANNOTATION.findall(record.body))
        state = b"shutdown" if annotations.get(b"shutdown") == b"true" else annotations.get(b"ready", b"true")
        grown = change.previous is not None and _capacity(change.previous) not in (b"", _capacity(record))
        if grown:
            self._resized_nodes.add(record.name)
        if change.previous is None or state != self._states.get(record.name, b"true") or _is_given_up(record):
            self._states[record.name] = state
            pods = ((pod.namespace, pod.name) for pod in self._pods.on_node(record.name))
            return (("", record.name), *((_RENEWAL,) if self._heartbeats else ()), *pods)
        return (("", record.name),) if grown else ()

    def _reconcile_node(self, name: str) -> float | None:
        record = self._store.get("nodes", "", name)
        lease = self._store.get(_LEASES, _LEASE_NAMESPACE, name)
        if record is None:
            self._addresses.forget(name)
            if lease is not None:
                self._store.delete(_LEASES, lease)
            return None
        state = self._states.get(name, b"true")
        if state == b"unknown":
            if lease is None and not self._heartbeats:
                self._create_lease(record)
            return None
        if lease is not None and not self._heartbeats:
            self._store.delete(_LEASES, lease)
            lease = None
        grown = name in self._resized_nodes
        self._resized_nodes.discard(name)
        if not self._heartbeats and not grown and state == b"true" and has_condition(record.object(), "Ready"):
            return None
        address, now = self._addresses.of_node(name), self._store.now()

        def report(node: Object) -> None:
            statuses.report_node(node, address, now, _NOT_READY_MESSAGES.get(state, ""))
            if grown:
                statuses.offer_extended(node["status"])

        if lease is not None and state != b"false":
            self._renew_lease(lease)
        self._api.update("nodes", "", name, report, sub="status")
        if lease is None and state == b"true" and self._heartbeats:
            self._create_lease(record)
        return None

    def _create_lease(self, node: Record) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        renewed = format_micro_time(self._api.now())
        spec = {"holderIdentity": node.name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": renewed}
        lease = {"metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": spec}
        self._api.create(_LEASES, _LEASE_NAMESPACE, lease)

    def _renew(self) -> float | None:
        """Renew the leases of one slice of all nodes; each lease is renewed every ten seconds."""
        self._slice = (self._slice + 1) % _RENEW_SLICES
        leases = self._store.collection(_LEASES).by_namespace.get(_LEASE_NAMESPACE, {})
        nodes = self._store.collection("nodes").by_namespace.get("", {})
        for name in itertools.islice(nodes, self._slice, None, _RENEW_SLICES):
            lease = leases.get(name)
            if lease is not None and self._states.get(name, b"true") in (b"true", b"shutdown"):
                self._renew_lease(lease)
        return _RENEW_SECONDS / _RENEW_SLICES if nodes else None

    def _renew_lease(self, lease: Record) -> None:
        now = b'"renewTime":"%b"' % format_micro_time(self._api.now()).encode()
        self._store.renew(_LEASES, lease, partial(_renewed, lease.body, now))

    # Pods

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        node = record.fields[NODE]
        if change.type == "DELETED":
            self._addresses.release(record.uid)
            self._lifecycles.pop(record.uid, None)
            self._idle.pop(record.uid, None)
            self._allocated.pop(record.uid, None)
            waiting = self._deferred.pop(node, {})
            for uid in waiting.values():
                self._idle.pop(uid, None)
            return waiting
        if not node or (record.fields[PHASE] in DONE and b'"deletionTimestamp":"' not in record.body):
            return ()
        previous = change.previous
        if previous is not None and _generation(previous) != _generation(record):
            self._allocated.setdefault(record.uid, resizing.resources(previous.object()))
        return ((record.namespace, record.name),)

    def _claim_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        if change.type == "DELETED" or b'"reservedFor":[' not in record.body:
            return ()
        return consumers(self._store, record)

    def _reconcile_pod(self, key: Key) -> float | None:
        record = self._store.get("pods", *key)
        node = record.fields[NODE] if record is not None else ""
        if record is None or not node or self._store.get("nodes", "", node) is None:
            return None
        state, now = self._states.get(node, b"true"), self._api.now()
        if state in (b"false", b"unknown"):
            return None
        life = self._lifecycles.get(record.uid)
        if state == b"true":
            if self._idle.get(record.uid) == record.rv:
                return None
            if life is not None and life.rv == record.rv and now < life.wakes:
                return life.wakes - now
        pod = record.object()
        if record.fields[PHASE] in DONE and "deletionTimestamp" not in pod["metadata"]:
            # A client has set the final phase.
            self._lifecycles.pop(record.uid, None)
            return None
        if life is None:
            if admission.is_unscheduled(record) and self._reject(record, pod, node):
                return None
            if claims.has_claims(record) and not self._prepare_claims(pod):
                return None
            life = self._lifecycles[record.uid] = lifecycles.lifecycle_of(pod, Script(pod, self._pace), now)
        seconds = pod["spec"].get("activeDeadlineSeconds")
        life.deadline = life.seen + seconds if seconds is not None else NEVER
        self._stop_if_needed(pod, life, shutdown=state == b"shutdown")
        life.advance(now)
        self._resize(pod, life, key)
        self._report(pod, life, now)
        if life.done and "deletionTimestamp" in pod["metadata"]:
            # The containers have ended: the pod is removed, or waits for its finalizers.
            self._api.delete("pods", *key, uid=record.uid, grace=0)
            return None
        life.wakes = life.next_change(now)
        if life.wakes != NEVER:
            return life.wakes - now
        self._idle[record.uid] = life.rv
        del self._lifecycles[record.uid]
        return None

    def _reject(self, record: Record, pod: Object, node: str) -> bool:
        """Fail a pod that was not bound by a scheduler if it does not fit; return whether it failed."""
        before = itertools.takewhile(lambda one: one.uid != record.uid, self._pods.on_node(node))
        others = [one.object() for one in before if one.fields[PHASE] not in DONE]
        rejection = admission.rejection(pod, others, self._api.read("nodes", "", node) or {})
        if rejection is not None:
            reason, message = rejection
            self._api.event("kubelet", pod, reason, message, "Warning")
            status = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
            self._api.set_status("pods", pod, {**status, "qosClass": pod["status"].get("qosClass", "BestEffort")})
        return rejection is not None

    def _prepare_claims(self, pod: Object) -> bool:
        """Return whether the devices of a pod are ready; if not, it is reconciled again when a claim changes."""
        if "deletionTimestamp" in pod["metadata"] or pod["status"].get("startTime"):
            return True
        error = claims.preparation_error(pod, self._api)
        if error:
            message = f"Failed to prepare dynamic resources: {error}"
            self._api.event("kubelet", pod, "FailedPrepareDynamicResources", message, "Warning")
        return not error

    def _stop_if_needed(self, pod: Object, life: PodLifecycle, *, shutdown: bool) -> None:
        metadata, now = pod["metadata"], self._api.now()
        if life.done:
            return
        if "deletionTimestamp" in metadata:
            grace = float(metadata.get("deletionGracePeriodSeconds", 0))
            if grace < life.grace:
                life.stop(now, grace)
        elif shutdown and life.stop_at == NEVER:
            life.reason, life.message = "Terminated", "Pod was terminated in response to imminent node shutdown."
            if not life.started:
                life.reason, life.message = "NodeShutdown", "Pod was rejected as the node is shutting down."
            life.stop(now, float(pod["spec"].get("terminationGracePeriodSeconds", 30)) if life.started else 0.0)

    def _report(self, pod: Object, life: PodLifecycle, now: float) -> None:
        metadata = pod["metadata"]

        def report(current: Object) -> None:
            statuses.report_pod(current, life, self._addresses, now)
            if "resourceClaims" in current["spec"] and not life.done:
                claims.report(current, self._api)
            if life.reason == "Terminated" and life.done:
                target = {"reason": "TerminationByKubelet", "message": life.message}
                set_condition(current, "DisruptionTarget", "True", self._store.now(), **target)
            resizing.report(current, life, now)

        life.rv = self._api.update("pods", metadata["namespace"], metadata["name"], report, sub="status").rv

    def _resize(self, pod: Object, life: PodLifecycle, key: Key) -> None:
        """Resize the containers of a pod according to its spec, if the node has enough free capacity."""
        previous = self._allocated.pop(pod["metadata"]["uid"], {})
        if not life.allocated and previous != resizing.resources(pod):
            life.allocated = previous
        if life.done or not resizing.is_needed(pod, life):
            return
        name = pod["spec"]["nodeName"]
        others = [
            one.object()
            for one in self._pods.on_node(name)
            if one.uid != pod["metadata"]["uid"] and one.fields[PHASE] not in DONE
        ]
        if resizing.decide(pod, life, self._api.read("nodes", "", name) or {}, others, self._api.now()) == "Deferred":
            self._deferred.setdefault(name, {})[key] = pod["metadata"]["uid"]


def _is_given_up(node: Record) -> bool:
    """Return whether a node is marked as unknown: its heartbeats were late, as after a suspension of the machine."""
    if b'"NodeStatusUnknown"' not in node.body:
        return False
    return (condition_of(node.object(), "Ready") or {}).get("status") == "Unknown"


def _generation(record: Record) -> bytes:
    found = _GENERATION.search(record.body)
    return found[1] if found else b""

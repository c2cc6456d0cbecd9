"""All stand-in kubelets together: one more controller, whose keys are pods and nodes.

There is no task for a node. A visit to a pod plays its life until now and writes what changed; it is visited again when
something more is due. Heartbeats are renewed in batches, straight in the store. An idle fleet costs its heartbeats;
without them it costs nothing, and a node has a lease only while it is silent: the lease tells since when.

Annotations of a node: with `kubestow.dev/ready: "false"` its kubelet says that it is not ready and does nothing more;
with `"unknown"` it falls silent without a word. `kubestow.dev/shutdown: "true"` shuts it down: its pods are stopped.
"""

import itertools
import re
from collections.abc import Iterable
from functools import partial

from kubestow.api.timestamps import format_micro_time
from kubestow.apiserver.controllers.api import Object, condition_of
from kubestow.apiserver.controllers.pods import DONE, NODE, PHASE, Pods
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.kubelets import admission, claims, lives, resizing, statuses
from kubestow.apiserver.kubelets.lives import NEVER, Life
from kubestow.apiserver.kubelets.scripts import Pace, Script
from kubestow.apiserver.rules.pods import set_condition
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_ANNOTATION = re.compile(rb'"kubestow\.dev/(ready|shutdown)":"(false|unknown|true)"')
_TROUBLES = {b"false": "made not ready by its annotation", b"shutdown": "node is shutting down"}
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
    """What a node has, without decoding it."""
    found = _CAPACITY.search(node.body)
    return found[0] if found else b""


def _renewed(body: bytes, renewal: bytes, rv: int) -> bytes:
    """A lease with another time and version, without decoding it."""
    return _VERSION.sub(b'"resourceVersion":"%d"' % rv, _RENEWED.sub(renewal, body, count=1), count=1)


class Fleet:
    """Acts for every node in a store; keys are pods, nodes (without a namespace) and the renewal of leases."""

    def __init__(self, pods: Pods, pace: Pace, *, heartbeats: bool = True) -> None:
        self._pods = pods
        self._heartbeats = heartbeats
        self._api = pods.api
        self._store = pods.api.store
        self._pace = pace
        self._states: dict[str, bytes] = {}
        """What annotations make of a node: false, unknown or shutdown."""
        self._grown: set[str] = set()
        """Nodes whose capacity somebody has changed."""
        self._lives: dict[str, Life] = {}
        """Pods with which something is going to happen."""
        self._settled: dict[str, int] = {}
        """Versions of pods with which nothing is."""
        self._held: dict[str, dict[str, Object]] = {}
        """What the containers of a pod held before its spec changed."""
        self._deferred: dict[str, dict[Key, str]] = {}
        """Pods that wait for room to grow, by node."""
        self._addresses = statuses.Addresses()
        self._slice = 0

    def sources(self) -> dict[str, KeysOf]:
        """Follows nodes, the pods bound to them, and claims that pods wait for."""
        return {"nodes": self._of_node, "pods": self._of_pod, claims.CLAIMS: self._of_claim}

    def visit(self, key: Key) -> float | None:
        """Acts for one pod or one node."""
        if key == _RENEWAL:
            return self._renew()
        return self._visit_pod(key) if key[0] else self._visit_node(key[1])

    # Nodes

    def _of_node(self, change: Change) -> Iterable[Key]:
        record = change.record
        if change.type == "DELETED":
            self._states.pop(record.name, None)
            return (("", record.name),)
        said = dict(_ANNOTATION.findall(record.body))
        state = b"shutdown" if said.get(b"shutdown") == b"true" else said.get(b"ready", b"true")
        grown = change.previous is not None and _capacity(change.previous) not in (b"", _capacity(record))
        if grown:
            self._grown.add(record.name)
        if change.previous is None or state != self._states.get(record.name, b"true"):
            self._states[record.name] = state
            pods = ((pod.namespace, pod.name) for pod in self._pods.on_node(record.name))
            return (("", record.name), *((_RENEWAL,) if self._heartbeats else ()), *pods)
        return (("", record.name),) if grown else ()

    def _visit_node(self, name: str) -> float | None:
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
        grown = name in self._grown
        self._grown.discard(name)
        if not self._heartbeats and not grown and state == b"true" and is_ready(record.object()):
            return None
        address, now = self._addresses.of_node(name), self._store.now()

        def report(node: Object) -> None:
            statuses.report_node(node, address, now, _TROUBLES.get(state, ""))
            if grown:
                statuses.offer_extended(node["status"])

        if lease is not None and state != b"false":
            self._beat(lease)
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
        """Renews the leases of one slice of all nodes; over ten seconds each has its turn."""
        self._slice = (self._slice + 1) % _RENEW_SLICES
        leases = self._store.collection(_LEASES).by_namespace.get(_LEASE_NAMESPACE, {})
        nodes = self._store.collection("nodes").by_namespace.get("", {})
        for name in itertools.islice(nodes, self._slice, None, _RENEW_SLICES):
            lease = leases.get(name)
            if lease is not None and self._states.get(name, b"true") in (b"true", b"shutdown"):
                self._beat(lease)
        return _RENEW_SECONDS / _RENEW_SLICES if nodes else None

    def _beat(self, lease: Record) -> None:
        now = b'"renewTime":"%b"' % format_micro_time(self._api.now()).encode()
        self._store.renew(_LEASES, lease, partial(_renewed, lease.body, now))

    # Pods

    def _of_pod(self, change: Change) -> Iterable[Key]:
        record = change.record
        node = record.fields[NODE]
        if change.type == "DELETED":
            self._addresses.release(record.uid)
            self._lives.pop(record.uid, None)
            self._settled.pop(record.uid, None)
            self._held.pop(record.uid, None)
            waiting = self._deferred.pop(node, {})
            for uid in waiting.values():
                self._settled.pop(uid, None)
            return waiting
        if not node or (record.fields[PHASE] in DONE and b'"deletionTimestamp":"' not in record.body):
            return ()
        previous = change.previous
        if previous is not None and _generation(previous) != _generation(record):
            self._held.setdefault(record.uid, resizing.resources(previous.object()))
        return ((record.namespace, record.name),)

    def _of_claim(self, change: Change) -> Iterable[Key]:
        record = change.record
        if change.type == "DELETED" or b'"reservedFor":[' not in record.body:
            return ()
        return [(record.namespace, one["name"]) for one in record.object()["status"]["reservedFor"]]

    def _visit_pod(self, key: Key) -> float | None:
        record = self._store.get("pods", *key)
        node = record.fields[NODE] if record is not None else ""
        if record is None or not node or self._store.get("nodes", "", node) is None:
            return None
        state, now = self._states.get(node, b"true"), self._api.now()
        if state in (b"false", b"unknown"):
            return None
        life = self._lives.get(record.uid)
        if state == b"true":
            if self._settled.get(record.uid) == record.rv:
                return None
            if life is not None and life.rv == record.rv and now < life.wakes:
                return life.wakes - now
        pod = record.object()
        if record.fields[PHASE] in DONE and "deletionTimestamp" not in pod["metadata"]:
            # Somebody else has put an end to it.
            self._lives.pop(record.uid, None)
            return None
        if life is None:
            if admission.is_unscheduled(record) and self._reject(record, pod, node):
                return None
            if claims.has_claims(record) and not self._prepare(pod):
                return None
            life = self._lives[record.uid] = lives.born(pod, Script(pod, self._pace), now)
        seconds = pod["spec"].get("activeDeadlineSeconds")
        life.deadline = life.seen + seconds if seconds is not None else NEVER
        self._ask_to_stop(pod, life, shutdown=state == b"shutdown")
        life.advance(now)
        self._resize(pod, life, key)
        self._report(pod, life, now)
        if life.done and "deletionTimestamp" in pod["metadata"]:
            # The kubelet is done with it: it goes, or waits for its finalizers.
            self._api.delete("pods", *key, uid=record.uid, grace=0)
            return None
        life.wakes = life.next_change(now)
        if life.wakes != NEVER:
            return life.wakes - now
        self._settled[record.uid] = life.rv
        del self._lives[record.uid]
        return None

    def _reject(self, record: Record, pod: Object, node: str) -> bool:
        """Whether there was no room for a pod that no scheduler has bound; it has failed then."""
        before = itertools.takewhile(lambda one: one.uid != record.uid, self._pods.on_node(node))
        others = [one.object() for one in before if one.fields[PHASE] not in DONE]
        refused = admission.rejection(pod, others, self._api.read("nodes", "", node) or {})
        if refused is not None:
            reason, message = refused
            self._api.event("kubelet", pod, reason, message, "Warning")
            status = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
            self._api.set_status("pods", pod, {**status, "qosClass": pod["status"].get("qosClass", "BestEffort")})
        return refused is not None

    def _prepare(self, pod: Object) -> bool:
        """Whether a pod that is to start has its devices; if not, it is visited again when a claim changes."""
        if "deletionTimestamp" in pod["metadata"] or pod["status"].get("startTime"):
            return True
        trouble = claims.trouble(pod, self._api)
        if trouble:
            message = f"Failed to prepare dynamic resources: {trouble}"
            self._api.event("kubelet", pod, "FailedPrepareDynamicResources", message, "Warning")
        return not trouble

    def _ask_to_stop(self, pod: Object, life: Life, *, shutdown: bool) -> None:
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

    def _report(self, pod: Object, life: Life, now: float) -> None:
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

    def _resize(self, pod: Object, life: Life, key: Key) -> None:
        """Gives containers the resources their spec asks for now, if the node has room."""
        held = self._held.pop(pod["metadata"]["uid"], {})
        if not life.allocated and held != resizing.resources(pod):
            life.allocated = held
        if life.done or not resizing.wants(pod, life):
            return
        name = pod["spec"]["nodeName"]
        others = [
            one.object()
            for one in self._pods.on_node(name)
            if one.uid != pod["metadata"]["uid"] and one.fields[PHASE] not in DONE
        ]
        if resizing.decide(pod, life, self._api.read("nodes", "", name) or {}, others, self._api.now()) == "Deferred":
            self._deferred.setdefault(name, {})[key] = pod["metadata"]["uid"]


def is_ready(node: Object) -> bool:
    """Whether a node's kubelet has said that it is ready."""
    ready = condition_of(node, "Ready")
    return ready is not None and ready.get("status") == "True"


def _generation(record: Record) -> bytes:
    found = _GENERATION.search(record.body)
    return found[1] if found else b""

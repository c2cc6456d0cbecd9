"""All stand-in kubelets together.

There is no task for a node. One heap holds what is due, one timer wakes up for the first of it: pods that start,
finish or end. Heartbeats are renewed in batches, straight in the store. An idle fleet costs its heartbeats.

A node is made not ready with the annotation `kubestow.dev/ready: "false"`: its heartbeat stops and its pods neither
start nor end. A pod says with `kubestow.dev/run-seconds` how long it runs before it finishes, and with
`kubestow.dev/exit-code` how it does.
"""

import asyncio
import heapq
import itertools
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from kubestow.apiserver import clock
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kubelets import statuses
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store
from kubestow.reporting.logs import get_logger

log = get_logger(__name__)

Object = dict[str, Any]
_NOT_READY = b'"kubestow.dev/ready":"false"'
_RUN_SECONDS = "kubestow.dev/run-seconds"
_LEASES = "leases.coordination.k8s.io"
_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_RENEW_SECONDS = 10.0
_RENEW_SLICES = 20
_SLICE_SECONDS = 0.004
_POD_FIELDS = BY_STORAGE["pods"].selectable_fields
_NODE, _PHASE = _POD_FIELDS.index("spec.nodeName"), _POD_FIELDS.index("status.phase")
_DONE = ("Succeeded", "Failed")
_VERSION = re.compile(rb'"resourceVersion":"\d+"')
_RENEWED = re.compile(rb'"renewTime":"[^"]*"')


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast stand-in kubelets are, in seconds."""

    start: float = 0.5
    """From binding to Running."""
    run: float = 2.0
    """How long pods run that are meant to finish."""
    stop: float = 0.5
    """From the wish to end until gone, at most the grace period."""


def _renewed(body: bytes, renewal: bytes, rv: int) -> bytes:
    """A lease with another time and version, without decoding it."""
    return _VERSION.sub(b'"resourceVersion":"%d"' % rv, _RENEWED.sub(renewal, body, count=1), count=1)


class Fleet:
    """Acts for every node in a store."""

    def __init__(self, writer: Writer, pace: Pace) -> None:
        self._writer = writer
        self._store: Store = writer.store
        self._pace = pace
        self._loop = asyncio.get_running_loop()
        self._due: list[tuple[float, int, str, str, str, str]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._down: set[str] = set()
        self._waiting: dict[str, list[tuple[str, str, str, str]]] = {}
        self._addresses = statuses.Addresses()
        self._slice = 0
        self._closed = False
        for storage, tell in (("nodes", self._node_changed), ("pods", self._pod_changed)):
            collection = self._store.collection(storage)
            for record in list(collection.objects.values()):
                tell(Change("ADDED", record, None))
            collection.subscribers.append(tell)
        self._renewal = self._loop.call_later(_RENEW_SECONDS / _RENEW_SLICES, self._renew)

    # Nodes

    def _node_changed(self, change: Change) -> None:
        record = change.record
        if change.type == "DELETED":
            self._down.discard(record.name)
            self._addresses.forget(record.name)
            lease = self._store.get(_LEASES, _LEASE_NAMESPACE, record.name)
            if lease is not None:
                self._loop.call_soon(self._drop_lease, record.name)
            return
        down = _NOT_READY in record.body
        if change.previous is None or down != (record.name in self._down):
            if down:
                self._down.add(record.name)
            else:
                self._down.discard(record.name)
            self._plan(0.0, "node", "", record.name, record.uid)

    def _drop_lease(self, name: str) -> None:
        lease = self._store.get(_LEASES, _LEASE_NAMESPACE, name)
        if lease is not None and self._store.get("nodes", "", name) is None:
            self._store.delete(_LEASES, lease)

    def _visit_node(self, name: str) -> None:
        record = self._store.get("nodes", "", name)
        if record is None:
            return
        down = name in self._down
        address = self._addresses.of_node(name)

        def change(node: Object) -> Object:
            statuses.report_node(node, address, ready=not down)
            return node

        self._writer.update(BY_STORAGE["nodes"], "", name, change, internal(), sub="status")
        if self._store.get(_LEASES, _LEASE_NAMESPACE, name) is None and not down:
            self._create_lease(record)
        if not down:
            for kind, namespace, pod, uid in self._waiting.pop(name, ()):
                self._plan(0.0, kind, namespace, pod, uid)

    def _create_lease(self, node: Record) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        spec = {"holderIdentity": node.name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": clock.micro_now()}
        lease = {"metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": spec}
        self._writer.create(BY_STORAGE[_LEASES], _LEASE_NAMESPACE, lease, internal())

    def _renew(self) -> None:
        """Renews the leases of one slice of all nodes; over ten seconds each has its turn."""
        if self._closed:
            return
        self._slice = (self._slice + 1) % _RENEW_SLICES
        leases = self._store.collection(_LEASES).by_namespace.get(_LEASE_NAMESPACE, {})
        nodes = self._store.collection("nodes").by_namespace.get("", {})
        now = b'"renewTime":"%b"' % clock.micro_now().encode()
        for name in itertools.islice(nodes, self._slice, None, _RENEW_SLICES):
            lease = leases.get(name)
            if lease is not None and name not in self._down:
                self._store.renew(_LEASES, lease, partial(_renewed, lease.body, now))
        self._renewal = self._loop.call_later(_RENEW_SECONDS / _RENEW_SLICES, self._renew)

    # Pods

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        if change.type == "DELETED":
            self._addresses.release(record.uid)
            return
        node = record.fields[_NODE]
        if not node:
            return
        previous = change.previous
        if b'"deletionTimestamp":"' in record.body:
            if previous is None or b'"deletionTimestamp":"' not in previous.body or record.fields[_PHASE] in _DONE:
                seconds = record.object()["metadata"].get("deletionGracePeriodSeconds", 0)
                self._plan(min(self._pace.stop, float(seconds)), "stop", record.namespace, record.name, record.uid)
        elif record.fields[_PHASE] == "Pending":
            if previous is None or previous.fields[_NODE] != node:
                self._plan(self._pace.start, "start", record.namespace, record.name, record.uid)
        elif record.fields[_PHASE] == "Running" and previous is None:
            self._plan_end(record)

    def _plan_end(self, record: Record) -> None:
        """Has a pod finish that is meant to."""
        pod = record.object()
        annotations = pod["metadata"].get("annotations", {})
        text = annotations.get(_RUN_SECONDS)
        if text is None and pod["spec"].get("restartPolicy", "Always") == "Always":
            return
        try:
            seconds = float(text) if text is not None else self._pace.run
        except ValueError:
            seconds = self._pace.run
        self._plan(max(0.0, seconds), "finish", record.namespace, record.name, record.uid)

    def _visit_pod(self, kind: str, namespace: str, name: str, uid: str) -> None:
        record = self._store.get("pods", namespace, name)
        if record is None or record.uid != uid:
            return
        node = record.fields[_NODE]
        if node in self._down and kind != "finish":
            self._waiting.setdefault(node, []).append((kind, namespace, name, uid))
            return
        if self._store.get("nodes", "", node) is None:
            return
        if kind == "stop":
            self._stop(record)
            return
        deleting = b'"deletionTimestamp":"' in record.body
        if kind == "start" and record.fields[_PHASE] == "Pending" and not deleting:
            self._report(record, lambda pod: statuses.running(pod, node, self._addresses))
            self._plan_end(record)
        elif kind == "finish" and record.fields[_PHASE] == "Running" and not deleting:
            self._report(record, statuses.finished)

    def _report(self, record: Record, alter: Any) -> None:
        def change(pod: Object) -> Object:
            alter(pod)
            return pod

        self._writer.update(BY_STORAGE["pods"], record.namespace, record.name, change, internal(), sub="status")

    def _stop(self, record: Record) -> None:
        pod = record.object()
        if pod["metadata"].get("finalizers"):
            pod["metadata"]["deletionGracePeriodSeconds"] = 0
            self._store.put("pods", pod)
        else:
            self._store.delete("pods", record)

    # What is due

    def _plan(self, seconds: float, kind: str, namespace: str, name: str, uid: str) -> None:
        at = self._loop.time() + seconds
        heapq.heappush(self._due, (at, next(self._order), kind, namespace, name, uid))
        self._set_timer(at)

    def _set_timer(self, at: float) -> None:
        if at < self._timer_at and not self._closed:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = self._loop.call_at(at, self._run)

    def _run(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        end = self._loop.time() + _SLICE_SECONDS
        while self._due and self._due[0][0] <= self._loop.time() < end:
            _, _, kind, namespace, name, uid = heapq.heappop(self._due)
            try:
                if kind == "node":
                    self._visit_node(name)
                else:
                    self._visit_pod(kind, namespace, name, uid)
            except ApiError as error:
                log.info("Stand-in kubelet is refused", v=2, err=error.message, kind=kind, object=f"{namespace}/{name}")
            except Exception as error:
                log.unexpected("Stand-in kubelet failed", err=error, kind=kind, object=f"{namespace}/{name}")
        if self._due:
            self._set_timer(max(self._due[0][0], self._loop.time()))

    def close(self) -> None:
        """Stops acting."""
        self._closed = True
        self._renewal.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._store.collection("nodes").subscribers.remove(self._node_changed)
        self._store.collection("pods").subscribers.remove(self._pod_changed)

"""Garbage collection of pods: on deleted nodes, deleted before they were scheduled, and finished ones above a limit."""

from collections.abc import Iterable
from itertools import islice

from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.controllers.pods import DONE, NODE, PHASE, Pods
from kubestow.apiserver.rules.pods import set_condition
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_QUARANTINE_SECONDS = 40.0
_FINISHED, _POD = ("finished", ""), "pod:"
_BATCH = 500


class PodGarbageCollector:
    """Deletes pods. Keys are `node` with a node's name, `finished`, or those of pods prefixed with `pod:`."""

    def __init__(self, pods: Pods, finished_limit: int = 12_500) -> None:
        self._pods = pods
        self._api = pods.api
        self._limit = finished_limit
        self._finished: dict[Key, None] = {}
        self._missing_since: dict[str, float] = {}
        self.sources = {"nodes": self._node_keys, "pods": self._pod_keys}

    def _node_keys(self, change: Change) -> Iterable[Key]:
        return (("node", change.record.name),) if change.type == "DELETED" else ()

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        key = (record.namespace, record.name)
        if change.type == "DELETED":
            self._finished.pop(key, None)
            return
        if record.fields[PHASE] in DONE:
            self._finished[key] = None
            if len(self._finished) > self._limit:
                yield _FINISHED
        node = record.fields[NODE]
        if not node and record.fields[PHASE] not in DONE and b'"deletionTimestamp":"' in record.body:
            yield (f"{_POD}{record.namespace}", record.name)
        if node and self._api.store.get("nodes", "", node) is None:
            yield ("node", node)

    def reconcile(self, key: Key) -> float | None:
        """Delete the pods of one key."""
        if key == _FINISHED:
            surplus = len(self._finished) - self._limit
            for pod in list(islice(self._finished, max(0, min(surplus, _BATCH)))):
                self._finished.pop(pod)
                self._api.delete("pods", *pod, grace=0)
            return 0.0 if surplus > _BATCH else None
        if key[0].startswith(_POD):
            record = self._api.store.get("pods", key[0].removeprefix(_POD), key[1])
            if record is not None:
                self._fail_and_delete(record, "PodGC: pod was deleted before it was scheduled")
            return None
        name = key[1]
        if self._api.store.get("nodes", "", name) is not None:
            self._missing_since.pop(name, None)
            return None
        # The node may be created later than its pods.
        left = self._missing_since.setdefault(name, self._api.now()) + _QUARANTINE_SECONDS - self._api.now()
        if left > 0:
            return left
        del self._missing_since[name]
        for record in self._pods.on_node(name):
            self._fail_and_delete(record, "PodGC: node no longer exists")
        return None

    def _fail_and_delete(self, record: Record, message: str) -> None:
        def fail(pod: Object) -> None:
            pod["status"]["phase"] = "Failed"
            now = self._api.store.now()
            set_condition(pod, "DisruptionTarget", "True", now, reason="DeletionByPodGC", message=message)

        if record.fields[PHASE] not in DONE:
            self._api.update("pods", record.namespace, record.name, fail, sub="status")
        self._api.delete("pods", record.namespace, record.name, uid=record.uid, grace=0)

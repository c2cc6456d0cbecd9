"""Events of controllers: repeated events are counted in one object, and their rate is limited.

As in client-go's recorder, a component may write 25 events about an object, and one more every five minutes.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, TypeVar

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE

Object = dict[str, Any]
T = TypeVar("T")
_REMEMBERED = 4096
_BURST = 25.0
_REFILL_SECONDS = 300.0
_EVENTS = BY_STORAGE["events"]


class Recorder:
    """Writes the events of controllers."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._names: OrderedDict[Hashable, str] = OrderedDict()
        self._allowed: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._number = 0

    def record(self, component: str, obj: Object, reason: str, message: str, type_: str) -> None:
        """Write an event, or count it if it was written before; a rejected event is dropped."""
        metadata = obj["metadata"]
        if not self._allow((component, metadata["uid"])):
            return
        namespace = metadata.get("namespace") or "default"
        key = (component, metadata["uid"], reason, message, type_)
        try:
            name = self._names.get(key)
            if name is not None and self._writer.store.get("events", namespace, name) is not None:
                self._count(namespace, name)
            else:
                name = self._create(namespace, component, obj, reason, message, type_)
            _remember(self._names, key, name)
        except ApiError:
            return

    def _allow(self, key: Hashable) -> bool:
        now = self._writer.store.clock.now()
        left, since = self._allowed.get(key, (_BURST, now))
        left = min(_BURST, left + (now - since) / _REFILL_SECONDS)
        _remember(self._allowed, key, (left - 1 if left >= 1 else left, now))
        return left >= 1

    def _count(self, namespace: str, name: str) -> None:
        def increment(event: Object) -> Object:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = self._writer.store.now()
            return event

        self._writer.update(_EVENTS, namespace, name, increment, internal())

    def _create(self, namespace: str, component: str, obj: Object, reason: str, message: str, type_: str) -> str:
        metadata, now = obj["metadata"], self._writer.store.now()
        self._number += 1
        involved = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"]}
        for key in ("namespace", "uid", "resourceVersion"):
            if metadata.get(key):
                involved[key] = metadata[key]
        event = {
            "metadata": {"name": f"{metadata['name']}.{int(self._writer.store.clock.now() * 1e9) + self._number:x}"},
            "involvedObject": involved,
            "reason": reason,
            "message": message[:1024],
            "type": type_,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
        }
        return self._writer.create(_EVENTS, namespace, event, internal()).name


def _remember(table: OrderedDict[Hashable, T], key: Hashable, value: T) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > _REMEMBERED:
        table.popitem(last=False)

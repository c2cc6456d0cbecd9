"""Memory of the store: events and past changes are limited in bytes, however fast they are written."""

import gc
import tracemalloc

import pytest

from kubestow.apiserver.controllers.events import Events
from kubestow.apiserver.controllers.queue import Controllers
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.resources import Resource
from kubestow.apiserver.store.store import Store
from support.apiserver.world import Clock

LIMIT = 200_000


class Churn:
    """A store to which events are written in virtual time."""

    def __init__(self, limit: int = LIMIT, retain: int = 10_000) -> None:
        self.clock = Clock()
        self.store = Store(clock=self.clock, retain=retain)
        self.controllers = Controllers(self.store, [Events(self.store, limit)])
        self.events = self.store.collection("events")
        self.written = 0

    def write(self) -> None:
        """Write an event."""
        self.written += 1
        name, uid = f"p{self.written}.18e98afc456b3600", f"64d6e79f-cecd-41ad-be75-{self.written:012d}"
        metadata = {"name": name, "namespace": "default", "uid": uid, "labels": {"number": str(self.written)}}
        self.store.put("events", {"metadata": metadata, "note": f"Assigned default/p{self.written} to node-3"})

    def run(self, seconds: float) -> None:
        """Advance the time, and reconcile everything that is due."""
        end = self.clock.time + seconds
        while (due := self.controllers.next_due()) is not None and due <= end:
            self.clock.time = max(self.clock.time, due)
            self.controllers.reconcile_next()
        self.clock.time = end

    @property
    def event_bytes(self) -> int:
        """The size of all events."""
        return sum(record.size for record in self.events.objects.values())


def log_bytes(store: Store) -> int:
    """Return the size of all retained changes."""
    return sum(change.size for collection in store.collections.values() for change in collection.log)


def test_events_are_limited_in_bytes() -> None:
    """150 a second for ten minutes: the newest ones that fit are kept."""
    churn = Churn(retain=10)
    most = 0
    for _ in range(600):
        for _ in range(150):
            churn.write()
        churn.run(1)
        most = max(most, churn.event_bytes)
    assert LIMIT * 3 // 4 < most <= LIMIT
    numbers = [int(record.labels["number"]) for record in churn.events.objects.values()]
    assert numbers == list(range(churn.written - len(numbers) + 1, churn.written + 1))


def test_events_within_the_limit_are_kept_for_an_hour() -> None:
    """The limit does not shorten the life of few events."""
    churn = Churn()
    churn.write()
    churn.run(1800)
    churn.write()
    churn.run(1799)
    assert len(churn.events.objects) == 2
    churn.run(100)
    assert len(churn.events.objects) == 1
    churn.run(1800)
    assert not churn.events.objects


def test_past_changes_are_limited_in_bytes() -> None:
    """The largest log is shortened, others are kept; versions before that are expired."""
    store = Store(clock=Clock(), retained_bytes=LIMIT)
    for name in "abc":
        store.put("secrets", {"metadata": {"name": name, "namespace": "default", "uid": name}})
    for number in range(1000):
        metadata = {"name": "big", "namespace": "default", "uid": "u"}
        store.put("configmaps", {"metadata": metadata, "data": {"x": str(number) * 1000}})
        assert log_bytes(store) <= LIMIT
    assert log_bytes(store) > LIMIT // 4
    assert len(store.collection("secrets").since(1)) == 3
    changes = store.collection("configmaps").log
    assert store.collection("configmaps").since(changes[0].rv)
    with pytest.raises(ApiError, match="too old resource version"):
        store.collection("configmaps").since(2)


def test_a_change_above_the_limit_is_not_retained() -> None:
    """It is served, and watches that resume before it get 410."""
    store = Store(clock=Clock(), retained_bytes=1000)
    store.put("configmaps", {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "data": {"x": "y" * 2000}})
    assert store.get("configmaps", "default", "a") is not None
    assert log_bytes(store) == 0


def test_the_log_of_a_removed_resource_does_not_count() -> None:
    """The limit applies to what is retained."""
    store = Store(clock=Clock(), retained_bytes=LIMIT)
    for _ in range(3):
        store.add(Resource("example.com/v1", "Thing things"))
        metadata = {"name": "a", "namespace": "default", "uid": "u"}
        record = store.put("things.example.com", {"metadata": metadata, "data": "x" * (LIMIT // 4)})
        assert len(store.collection("things.example.com").log) == 1
        store.delete("things.example.com", record)
        store.drop("things.example.com")
    store.put("configmaps", {"metadata": {"name": "b", "namespace": "default", "uid": "v"}})
    assert len(store.collection("configmaps").log) == 1


def test_sizes_are_not_underestimated() -> None:
    """Those of events with all their entries in tables."""
    churn = Churn(limit=1 << 40, retain=10)
    for _ in range(100):
        churn.write()
    gc.collect()
    tracemalloc.start()
    try:
        before, estimated = tracemalloc.get_traced_memory()[0], churn.event_bytes
        for _ in range(2000):
            churn.write()
        assert tracemalloc.get_traced_memory()[0] - before <= churn.event_bytes - estimated
    finally:
        tracemalloc.stop()

"""The history of the store: every retained version can be listed, and a journal restores everything."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store import layout
from kubestow.apiserver.store.sqlite import SqliteJournal
from kubestow.apiserver.store.store import Store

WRITES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "put", "delete"])), max_size=40)
SETTINGS = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
State = dict[str, int]


def play(store: Store, writes: list[tuple[str, str]]) -> dict[int, State]:
    """Apply writes; return the state after each, as name and version."""
    states = {store.rv: shown(store)}
    for name, what in writes:
        current = store.get("configmaps", "d", name)
        if what == "put":
            obj: dict[str, Any] = {"metadata": {"name": name, "namespace": "d", "uid": name}}
            store.put("configmaps", obj)
        elif current is not None:
            store.delete("configmaps", current)
        states[store.rv] = shown(store)
    return states


def shown(store: Store, rv: int | None = None) -> State:
    """Return the objects at a version."""
    return {record.name: record.rv for record in store.collection("configmaps").ordered(None, rv)}


@SETTINGS
@given(WRITES)
def test_every_retained_version_can_be_shown(writes: list[tuple[str, str]]) -> None:
    """The state is that of the version; dropped versions are rejected."""
    store = Store(retain=5)
    for rv, state in play(store, writes).items():
        floor = store.collection("configmaps").floor
        if rv >= floor:
            assert shown(store, rv) == state
        else:
            with pytest.raises(ApiError, match="too old resource version"):
                shown(store, rv)


class Later:
    """A journal in which nothing becomes durable."""

    floors: dict[str, int] = {}
    state = layout.State()

    def rows(self) -> list[Any]:
        return []

    def start(self, *_: Any) -> None:
        """Ignore the callbacks."""

    def write(self, _row: Any) -> None:
        """Accept a row without making it durable."""


@SETTINGS
@given(WRITES)
def test_unpublished_versions_do_not_appear_in_earlier_states(writes: list[tuple[str, str]]) -> None:
    """Whether the state is requested once or twice."""
    store = Store(Later())  # type: ignore[arg-type]
    for rv, state in play(store, writes).items():
        assert shown(store, rv) == shown(store, rv) == state


@given(
    st.sets(st.tuples(st.sampled_from(["a", "a-b", "b"]), st.sampled_from("uvw"))),
    st.sampled_from([None, "a", "b", "c"]),
    st.one_of(st.none(), st.tuples(st.sampled_from(["a", "a-b"]), st.sampled_from("uvw"))),
)
def test_a_key_range_contains_the_keys_of_a_namespace_after_a_key(
    keys: set[tuple[str, str]], namespace: str | None, after: tuple[str, str] | None
) -> None:
    """In the current state, and in an earlier one."""
    store = Store()
    for place, name in keys:
        store.put("configmaps", {"metadata": {"name": name, "namespace": place, "uid": place + name}})
    wanted = sorted(key for key in keys if namespace in (None, key[0]) and (after is None or key > after))
    then, collection = store.rv, store.collection("configmaps")
    assert collection.key_range(namespace, after=after)[1] == wanted
    assert [key for key in collection._now()[1] if key in keys] == sorted(keys)
    assert collection.key_range(namespace, after=after)[1] == wanted
    store.put("configmaps", {"metadata": {"name": "x", "namespace": "b", "uid": "x"}})
    assert collection.key_range(namespace, then, after)[1] == wanted


@SETTINGS
@given(WRITES, WRITES)
def test_a_journal_restores_everything(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    """Objects, versions, the log with previous versions, and the counter, over two restarts."""

    async def live(folder: Path, writes: list[tuple[str, str]]) -> tuple[Any, ...]:
        journal = SqliteJournal(folder)
        store = Store(journal, retain=4)
        before = state_of(store)
        play(store, writes)
        done = asyncio.Event()
        store.when_durable(store.rv, done.set, done.set)
        await done.wait()
        journal.close()
        return before, state_of(store)

    with tempfile.TemporaryDirectory() as folder:
        _, left = asyncio.run(live(Path(folder), first))
        found, left_again = asyncio.run(live(Path(folder), second))
        assert found == left
        found_again, _ = asyncio.run(live(Path(folder), []))
        assert found_again == left_again


def state_of(store: Store) -> tuple[Any, ...]:
    """Return the complete state of a store."""
    collection = store.collection("configmaps")
    log = [
        (change.rv, change.type, change.record.body, change.previous.rv if change.previous else None)
        for change in collection.log
    ]
    return shown(store), collection.floor, log, store.rv if log else None

"""The store of an informer: from received objects to calls of the handler."""

import asyncio
import logging

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.client.informer import Informer
from kubestow.client.resources import PODS
from kubestow.client.watchlines import PlainMeta, Unreadable
from support.client.doubles import Noted, pod


def make(name: str, version: int, uid: str = "") -> Pod:
    return msgspec.convert(pod(name, version, uid), Pod)


def test_changes_are_delivered_in_order() -> None:
    """Add, update and delete are delivered in order, each with the right states."""
    noted = Noted()
    informer = Informer(PODS, noted)
    informer.put(make("a", 1))
    informer.put(make("a", 2))
    informer.remove(make("a", 3))
    assert noted.seen == ["+a@1", "a@1>2", "-a@3"]
    assert informer.objects == {}


def test_known_versions_are_not_delivered_again() -> None:
    """The same version twice, and the deletion of an unknown object, cause no call."""
    noted = Noted()
    informer = Informer(PODS, noted)
    informer.put(make("a", 1))
    informer.put(make("a", 1))
    informer.remove(make("b", 1))
    assert noted.seen == ["+a@1"]


def test_recreated_object_is_a_delete_and_an_add() -> None:
    """Another UID under the same name is another object."""
    noted = Noted()
    informer = Informer(PODS, noted)
    informer.put(make("a", 1, "first"))
    informer.put(make("a", 5, "second"))
    assert noted.seen == ["+a@1", "-a@1", "+a@5"]


def test_replace_delivers_the_differences() -> None:
    """A new list causes deletes, adds and updates, and no call for unchanged objects."""
    noted = Noted()
    informer = Informer(PODS, noted)
    informer.replace([make("gone", 1), make("same", 2), make("changed", 3)])
    assert noted.seen[-1] == "synced"
    noted.seen.clear()
    informer.replace([make("same", 2), make("changed", 7), make("new", 8)])
    assert noted.seen == ["-gone@1", "changed@3>7", "+new@8"]


def test_synced_once() -> None:
    """Only the first complete state is reported, even if it is empty."""
    noted = Noted()
    informer = Informer(PODS, noted)
    informer.replace([])
    informer.replace([])
    assert noted.seen == ["synced"]


objects = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 3), st.sampled_from("xy")), max_size=6)


@settings(deadline=None)
@given(st.lists(objects, max_size=6))
def test_a_handler_can_always_rebuild_the_state(states: list[dict[str, tuple[int, str]]]) -> None:
    """After any sequence of lists, the calls of the handler add up to exactly the last list."""
    mirror: dict[str, Pod] = {}

    class Mirror:
        def on_add(self, obj: Pod) -> None:
            assert obj.metadata.name not in mirror
            mirror[obj.metadata.name] = obj

        def on_update(self, old: Pod, new: Pod) -> None:
            assert mirror[new.metadata.name] is old
            assert old.metadata.uid == new.metadata.uid
            mirror[new.metadata.name] = new

        def on_delete(self, obj: Pod) -> None:
            del mirror[obj.metadata.name]

        def on_access(self, problem: str) -> None: ...

    informer = Informer(PODS, Mirror())
    for state in states:
        informer.replace([make(name, version, uid) for name, (version, uid) in state.items()])
        seen = {name: (int(p.metadata.resourceVersion), p.metadata.uid) for name, p in mirror.items()}
        assert seen == state


def test_unreadable_object_keeps_its_last_state() -> None:
    """An object that can no longer be decoded keeps its last state, in a watch and in a list, until it is deleted."""
    noted = Noted()
    informer = Informer(PODS, noted)
    informer.put(make("a", 1))
    meta = PlainMeta("a", "default", "uid-a", "2")
    informer.skip(Unreadable("MODIFIED", meta, "odd"))
    informer.replace([], [Unreadable("LISTED", meta, "odd")])
    assert list(informer.objects) == ["default/a"]
    assert informer.undecodable == {"default/a"}
    informer.skip(Unreadable("DELETED", meta, "odd"))
    assert not informer.undecodable
    assert noted.seen == ["+a@1", "synced", "-a@1"]


@pytest.mark.parametrize("repaired", ["put", "replaced", "removed"])
def test_an_object_that_can_be_decoded_again_is_not_counted(repaired: str) -> None:
    informer = Informer(PODS, Noted())
    informer.skip(Unreadable("ADDED", PlainMeta("a", "default", "uid-a", "1"), "odd"))
    assert informer.undecodable == {"default/a"}
    if repaired == "put":
        informer.put(make("a", 2))
    elif repaired == "replaced":
        informer.replace([make("a", 2)])
    else:
        informer.remove(make("a", 2))
    assert not informer.undecodable


def test_failing_handler_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of a handler is logged with the object's key; the next event is delivered."""

    class Fussy(Noted):
        def on_add(self, obj: Pod) -> None:  # type: ignore[override]
            if obj.metadata.name == "a":
                raise KeyError("no such node")
            super().on_add(obj)

    noted = Fussy()
    informer = Informer(PODS, noted)
    with caplog.at_level(logging.ERROR):
        informer.replace([make("a", 1), make("b", 2)])
    assert noted.seen == ["+b@2", "synced"]
    assert 'resource="pods" object="default/a"' in caplog.text


def test_waiting_for_sync() -> None:
    """A caller can wait for `synced`."""

    async def main() -> None:
        informer = Informer(PODS, Noted())
        asyncio.get_running_loop().call_soon(informer.set_access, "")
        await informer.synced.wait()

    asyncio.run(main())

"""Watches: their first events, changes, resuming, and the closing of slow ones."""

import asyncio
import itertools
import json
from collections.abc import Callable

import pytest

from kubestow.apiserver.rest.watching import Watch
from kubestow.apiserver.store.records import Change
from kubestow.server.http.limits import Limits
from support.apiserver.direct import Direct, Wire
from support.apiserver.running import Client, Running, pod
from support.client.virtualtime import run

PODS = "/api/v1/namespaces/default/pods"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


def test_a_watch_without_a_version_starts_with_existing_objects(plane: Running, client: Client) -> None:
    """They are sent as ADDED, followed by changes in order."""
    client.create(PODS, pod("a"))
    watch = plane.watch(f"{PODS}?watch=1")
    assert (watch.next()["type"], client.create(PODS, pod("b"))["kind"]) == ("ADDED", "Pod")
    client.patch(f"{PODS}/b", {"metadata": {"labels": {"x": "y"}}})
    client.delete(f"{PODS}/b")
    events = [watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_resumes_from_a_version(plane: Running, client: Client) -> None:
    """All changes after the version are sent, and no earlier ones."""
    first = client.create(PODS, pod("a"))
    client.create(PODS, pod("b"))
    client.delete(f"{PODS}/a")
    watch = plane.watch(f"{PODS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
    events = [(event["type"], event["object"]["metadata"]["name"]) for event in (watch.next(), watch.next())]
    assert events == [("ADDED", "b"), ("DELETED", "a")]


def test_an_expired_version_is_gone(start: Callable[..., Running]) -> None:
    """410 Expired if the changes since the version are no longer retained, or it is from the future."""
    plane = start(retained_changes=2)
    client = plane.client()
    for name in "abcdefgh":
        client.create(PODS, pod(name))
    assert client.call("GET", f"{PODS}?watch=1&resourceVersion=1")[0] == 410
    status, body = client.call("GET", f"{PODS}?watch=1&resourceVersion=999999")
    assert (status, body["reason"]) == (410, "Expired")


def test_a_field_selector_turns_entering_and_leaving_into_added_and_deleted(plane: Running, client: Client) -> None:
    """A bound pod enters `spec.nodeName!=`; lines start with the type, also for PartialObjectMetadata."""
    version = client.get(PODS)["metadata"]["resourceVersion"]
    watch = plane.watch(f"{PODS}?watch=1&resourceVersion={version}&fieldSelector=spec.nodeName!%3D", PARTIAL)
    client.create(PODS, pod("a"))
    client.create(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    line = watch.response.readline()
    assert line.startswith(b'{"type":"ADDED"')
    event = json.loads(line)
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in event["object"]


def test_a_label_selector_sees_an_object_leave(plane: Running, client: Client) -> None:
    """The DELETED event has the previous state, with the version of the change."""
    watch = plane.watch(f"{PODS}?watch=1&labelSelector=app%3Da")
    client.create(PODS, pod("a"))
    changed = client.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "other"}}})
    assert watch.next()["type"] == "ADDED"
    left = watch.next()
    assert (left["type"], left["object"]["metadata"]["labels"]) == ("DELETED", {"app": "a"})
    assert left["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


def test_a_watch_list_ends_its_first_part_with_a_bookmark(plane: Running, client: Client) -> None:
    """sendInitialEvents: all objects, then a bookmark with the annotation, then changes."""
    client.create(PODS, pod("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watch = plane.watch(f"{PODS}?{query}")
    assert watch.next()["type"] == "ADDED"
    bookmark = watch.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "Pod"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    client.create(PODS, pod("b"))
    assert watch.next()["object"]["metadata"]["name"] == "b"


def test_a_watch_ends_with_a_bookmark() -> None:
    """At the timeout, the client gets the version that it has reached."""

    async def play() -> Wire:
        direct = Direct()
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={direct.store.rv}"
        wire = direct.send("GET", f"{PODS}?{query}")
        direct.watchers.close()
        return wire

    line = asyncio.run(play()).sent.split(b"\r\n")[1]
    assert json.loads(line)["type"] == "BOOKMARK"


def test_a_single_object_can_be_watched(plane: Running, client: Client) -> None:
    """By its own path."""
    watch = plane.watch(f"{PODS}/b?watch=1")
    client.create(PODS, pod("a"))
    client.create(PODS, pod("b"))
    assert watch.next()["object"]["metadata"]["name"] == "b"


def test_tables_are_watched_too(plane: Running, client: Client) -> None:
    """For kubectl get -w."""
    watch = plane.watch(f"{PODS}?watch=1", "application/json;as=Table;v=v1;g=meta.k8s.io")
    client.create(PODS, pod("a"))
    row = watch.next()["object"]["rows"][0]
    assert row["cells"][:3] == ["a", "0/1", "Pending"]


def test_the_number_of_watches_is_bounded(start: Callable[..., Running]) -> None:
    """Beyond the limit, a watch gets a 429 response."""
    plane = start(max_watches=1)
    assert plane.watch(f"{PODS}?watch=1").status == 200
    status, body = plane.client().call("GET", f"{PODS}?watch=1")
    assert (status, body["reason"]) == (429, "TooManyRequests")


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("/api/v1/pods?watch=1", 4),
        (f"{PODS}?watch=1", 3),
        ("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1", 2),
        (f"{PODS}?watch=1&fieldSelector=spec.nodeName%3Dn2", 1),
        ("/api/v1/pods?watch=1&fieldSelector=spec.nodeName!%3Dn1", 4),
        (f"{PODS}/a?watch=1", 2),
    ],
)
def test_a_watch_is_called_only_for_changes_of_its_topic(
    path: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand watches of other nodes add no cost to a change."""
    changed: list[str] = []

    def record(_: Watch, change: Change) -> None:
        changed.append(change.record.name)

    monkeypatch.setattr(Watch, "on_change", record)

    async def play() -> None:
        direct = Direct()
        direct.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        direct.send("GET", f"{path}&resourceVersion={direct.store.rv}")
        direct.call("POST", PODS, pod("a", nodeName="n1"))
        direct.call("POST", PODS, pod("b", nodeName="n2"))
        direct.call("POST", "/api/v1/namespaces/other/pods", pod("c", nodeName="n3"))
        direct.call("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
        direct.watchers.close()
        assert not direct.store.collection("pods")._by_topic

    asyncio.run(play())
    assert len(changed) == count


def test_a_rejected_watch_is_not_subscribed() -> None:
    """It leaves no followers."""

    async def play() -> tuple[int, int, int]:
        direct = Direct()
        status, _ = direct.call("GET", f"{PODS}?watch=1&timeoutSeconds=soon")
        counts = len(direct.watchers), len(direct.store.collection("pods").subscribers)
        direct.watchers.close()
        return status, *counts

    assert asyncio.run(play()) == (400, 0, 0)


def test_a_watch_whose_client_does_not_read_is_closed(start: Callable[..., Running]) -> None:
    """Other watches get all pods."""
    plane = start(limits=Limits(unsent=100_000))
    slow, quick, client = plane.watch(f"{PODS}?watch=1"), plane.watch(f"{PODS}?watch=1"), plane.client()
    names = (f"p{number}" for number in itertools.count())
    while plane.inside(lambda: len(plane.control_plane.application.watchers)) == 2:
        name = next(names)
        client.create(PODS, pod(name, schedulerName="x" * 100_000))
        quick.until(lambda event, name=name: event["object"]["metadata"]["name"] == name)  # type: ignore[misc]
    assert slow.status == quick.status == 200


def test_a_burst_is_sent_together() -> None:
    """Changes within one turn of the event loop are one write to each watch, in order."""

    async def play() -> list[bytes]:
        direct = Direct()
        wire = direct.send("GET", f"{PODS}?watch=1&resourceVersion={direct.store.rv}")
        writes: list[bytes] = []
        wire.write = writes.append  # type: ignore[assignment, method-assign]
        for name in "abc":
            direct.call("POST", PODS, pod(name))
        await asyncio.sleep(0.005)
        direct.watchers.close()
        return [data for data in writes if data]

    writes = run(play())
    assert len(writes) == 1
    positions = [writes[0].index(b'"name":"%c"' % name) for name in b"abc"]
    assert positions == sorted(positions)

"""Splitting and decoding the lines of a watch."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.failures import BadAnswerError
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.client.watchlines import Added, Bookmarked, Deleted, Failed, LineDecoder, Modified, Unreadable
from support.client.doubles import pod
from support.client.scripted import line

BOOKMARK = {
    "kind": "Pod",
    "metadata": {"resourceVersion": "7", "annotations": {"a": "b"}},
    "spec": {"containers": None},
}
STREAM = b"".join(
    [
        line("ADDED", pod("a", 1)),
        line("MODIFIED", pod("ä", 2)),
        line("DELETED", pod("a", 3)),
        line("BOOKMARK", BOOKMARK),
    ]
)


def shapes(events: list[Any]) -> list[tuple[type, str]]:
    return [(type(event), event.object.metadata.resourceVersion) for event in events]


EXPECTED = [(Added, "1"), (Modified, "2"), (Deleted, "3"), (Bookmarked, "7")]


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_are_the_same_however_the_stream_is_split(cuts: list[int]) -> None:
    """Wherever pieces begin and end, in the middle of a line or of a character, the events are the same."""
    decoder = LineDecoder(Pod)
    edges = [0, *sorted(cuts), len(STREAM)]
    events = [event for start, end in itertools.pairwise(edges) for event in decoder.feed(STREAM[start:end])]
    assert shapes(events) == EXPECTED


def test_bookmarks_need_no_decoder_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating a decoder is slow, and most resources of most clusters have no objects when a scheduler starts."""
    made: list[type] = []
    monkeypatch.setattr("kubestow.client.watchlines._decoder", made.append)
    decoder = LineDecoder(Pod)
    bookmark = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7"}}}\n'
    assert shapes(decoder.feed(bookmark)) == [(Bookmarked, "7")]
    assert made == []
    assert shapes(decoder.feed(line("ADDED", pod("a", 8)))) == [(Added, "8")]
    assert made == [Pod]


def test_incomplete_line_is_buffered() -> None:
    """A line without its end yields nothing."""
    assert LineDecoder(Pod).feed(line("ADDED", pod("a", 1))[:-1]) == []


def test_error_event_keeps_its_status() -> None:
    """The object of an ERROR event stays raw: it is a Status, not an object of the resource."""
    [event] = LineDecoder(Pod).feed(line("ERROR", {"kind": "Status", "code": 410}))
    assert isinstance(event, Failed)
    assert json.loads(bytes(event.object)) == {"kind": "Status", "code": 410}


def test_type_after_the_object() -> None:
    """The order of the two members does not matter."""
    data = json.dumps({"object": pod("a", 1), "type": "ADDED"}).encode() + b"\n"
    assert shapes(LineDecoder(Pod).feed(data)) == [(Added, "1")]


def test_nulls_count_as_absent() -> None:
    """An object with nulls, as Go clients write them, is decoded among others."""
    strange = pod("b", 2)
    strange["metadata"]["labels"] = None
    strange["spec"] = {"containers": None}
    events = LineDecoder(Pod).feed(line("ADDED", pod("a", 1)) + line("ADDED", strange))
    assert shapes(events) == [(Added, "1"), (Added, "2")]


def test_invalid_object_is_named_and_the_rest_decoded() -> None:
    """An object of the wrong shape is reported with its name; its neighbours are decoded."""
    bad = pod("bad", 2, containers=17)
    first, second, third = LineDecoder(Pod).feed(
        line("ADDED", pod("a", 1)) + line("MODIFIED", bad) + line("ADDED", pod("c", 3))
    )
    assert isinstance(first, Added)
    assert isinstance(second, Unreadable)
    assert isinstance(third, Added)
    assert (second.type, second.metadata.name, second.metadata.resourceVersion) == ("MODIFIED", "bad", "2")
    assert "containers" in second.problem


def test_unknown_type_of_event() -> None:
    """An unknown type is reported and does not end the watch."""
    [event] = LineDecoder(Pod).feed(line("RENAMED", pod("a", 1)))
    assert isinstance(event, Unreadable)
    assert "RENAMED" in event.problem


@pytest.mark.parametrize("garbage", [b"<html>\n", b'{"type":"ADDED","obj\n', b"\xff\xfe\n", b"[]\n", b"17\n"])
def test_malformed_line(garbage: bytes) -> None:
    """A line that is not an event is an error of the stream."""
    with pytest.raises(BadAnswerError, match="not an event"):
        LineDecoder(Pod).feed(line("ADDED", pod("a", 1)) + garbage)


def test_endless_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that never ends is rejected at a limit."""
    monkeypatch.setattr("kubestow.client.watchlines.MAX_LINE", 1000)
    decoder = LineDecoder(Pod)
    decoder.feed(b"x" * 900)
    with pytest.raises(BadAnswerError, match="longer than"):
        decoder.feed(b"x" * 900)


def test_objects_that_are_written_back_keep_their_json() -> None:
    """A volume claim contains the received JSON, with fields that the scheduler does not know."""
    claim = {"metadata": {"name": "c", "resourceVersion": "4", "finalizers": ["x"]}, "spec": {"unknown": 1}}
    [event] = LineDecoder(PersistentVolumeClaim).feed(line("ADDED", claim))
    assert isinstance(event, Added)
    assert json.loads(bytes(event.object.source)) == claim


CLAIM = '{"metadata":{"name":"c","resourceVersion":"4"},"spec":{"unknown":",\\"object\\":"}}'


@pytest.mark.parametrize(
    "written",
    [
        f'{{"type":"MODIFIED","object":{CLAIM}}}',
        f'{{"type": "MODIFIED", "object": {CLAIM} }} ',
        f'{{"object":{CLAIM},"type":"MODIFIED"}}',
        f'{{"type":"MODIFIED","object":{CLAIM},"object2":{CLAIM}}}',
        f'\n{{"type":"MODIFIED","object":{CLAIM}}}\r\n',
    ],
)
def test_objects_that_are_written_back_are_cut_out_of_any_line(written: str) -> None:
    """In any format of the line, the JSON source of an object is exactly its own."""
    [event] = LineDecoder(PersistentVolumeClaim).feed(written.encode() + b"\n")
    assert isinstance(event, Modified)
    assert bytes(event.object.source).decode() == CLAIM


@pytest.mark.parametrize("rest", ['{"metadata":{"name":"c"},"spec":17}}', "17}"])
def test_an_invalid_object_to_be_written_back(rest: str) -> None:
    """It is reported like any other."""
    [event] = LineDecoder(PersistentVolumeClaim).feed(f'{{"type":"ADDED","object":{rest}\n'.encode())
    assert isinstance(event, Unreadable)
    assert event.type == "ADDED"


def test_a_line_about_an_object_to_be_written_back_that_is_cut_off() -> None:
    """It is not an event."""
    with pytest.raises(BadAnswerError, match="not an event"):
        LineDecoder(PersistentVolumeClaim).feed(f'{{"type":"ADDED","object":{CLAIM}\n'.encode())

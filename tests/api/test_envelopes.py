"""Lists, watch events, bookmarks and Status errors."""

import pytest

from kubestow.api.codec import DecodeError, decode
from kubestow.api.envelopes import Bookmark, RawList, Status, WatchEvent
from kubestow.api.pod import Pod


def test_a_list_keeps_its_items_undecoded() -> None:
    """An invalid item does not affect the others; resource version and continue token are read."""
    page = decode(
        RawList,
        b'{"kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "next", "remainingItemCount": 3},'
        b' "items": [{"metadata": {"name": "a"}}, {"metadata": 1}]}',
    )
    assert (page.metadata.resourceVersion, page.metadata.continue_, page.metadata.remainingItemCount) == (
        "7",
        "next",
        3,
    )
    assert decode(Pod, page.items[0]).metadata.name == "a"
    with pytest.raises(DecodeError, match="metadata"):
        decode(Pod, page.items[1])


def test_an_empty_list_may_be_null() -> None:
    """Go encodes an empty list as null."""
    page = decode(RawList, b'{"metadata": {"resourceVersion": "7"}, "items": null}')
    assert page.items == ()
    assert page.metadata.resourceVersion == "7"


def test_a_watch_event_keeps_its_object_undecoded() -> None:
    """The object is decoded after its type is known."""
    event = decode(
        WatchEvent, b'{"type": "ADDED", "object": {"kind": "Pod", "metadata": {"name": "a", "labels": null}}}'
    )
    assert event.type == "ADDED"
    assert decode(Pod, event.object).metadata.name == "a"


def test_a_bookmark_is_a_position() -> None:
    """A bookmark has a resourceVersion, and an annotation at the end of the initial objects."""
    event = decode(
        WatchEvent,
        b'{"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "42",'
        b' "creationTimestamp": null, "annotations": {"k8s.io/initial-events-end": "true"}}, "spec": {}}}',
    )
    bookmark = decode(Bookmark, event.object)
    assert bookmark.metadata.resourceVersion == "42"
    assert bookmark.metadata.annotations == {"k8s.io/initial-events-end": "true"}


def test_a_status_describes_an_error() -> None:
    """It has a code, a reason, a message, and the time of the next attempt."""
    event = decode(
        WatchEvent,
        b'{"type": "ERROR", "object": {"kind": "Status", "metadata": {}, "status": "Failure", "code": 410,'
        b' "message": "too old", "reason": "Expired", "details": {"retryAfterSeconds": 2,'
        b' "causes": [{"reason": "R", "message": "m", "field": "f"}]}}}',
    )
    status = decode(Status, event.object)
    assert (status.code, status.reason, status.message) == (410, "Expired", "too old")
    assert status.details is not None
    assert status.details.retryAfterSeconds == 2
    assert status.details.causes[0].field == "f"

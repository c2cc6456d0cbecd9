"""List and watch at a faulty server: the requests that are sent, and the resulting calls of the handler."""

import asyncio
import itertools
import logging

import pytest

from kubestow.api.devices import DeviceClass
from kubestow.client.resources import NODES, WATCHED, Resource
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.doubles import node, pod
from support.client.scripted import Answer, Request, line
from support.client.virtualtime import run
from support.client.watching import (
    Step,
    Steps,
    drop,
    event,
    gone,
    initial,
    page,
    reflecting,
    refuse,
    then,
    until,
    watch,
)

(DEVICE_CLASSES,) = (one for one in WATCHED if one.plural == "deviceclasses")


def test_metrics_of_a_watch() -> None:
    """The version of the store is that of the last event or bookmark; the pieces of the watch are timed."""
    script = Steps(
        then(
            initial(pod("a", 1), version="5"),
            event("MODIFIED", pod("a", 1234567890123456)),
            lambda answer: answer.bookmark("2234567890123457"),
        )
    )
    key = ("", "kube-scheduler", "pods", "v1")

    async def main() -> None:
        metrics = ClientMetrics()
        async with reflecting(script, metrics=metrics) as (_, noted, _informer):
            await until(lambda: len(noted.seen) == 3)
            await until(lambda: metrics.informer_version.read()[key] == 234567890123457)
            assert metrics.informer_queued.read() == {key: 0}
            assert sum(metrics.informer_seconds.read()[key].counts) == 4

    run(main())


def test_streamed_list_then_events() -> None:
    """The initial objects are delivered together at the bookmark that ends them, then changes as they arrive."""
    script = Steps(
        then(
            initial(pod("a", 1), pod("b", 2), version="5"),
            event("MODIFIED", pod("a", 6)),
            event("DELETED", pod("b", 7)),
        )
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, informer):
            await until(lambda: len(noted.seen) == 5)
            assert noted.seen == ["+a@1", "+b@2", "synced", "a@1>6", "-b@7"]
            assert list(informer.objects) == ["default/a"]
            assert server.requests[0].target == (
                "/api/v1/pods?allowWatchBookmarks=true&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
                "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=450&watch=true"
            )

    run(main())


def test_interrupted_initial_stream_has_no_effect() -> None:
    """A streamed list that is interrupted does not reach the handler; the next attempt starts again."""

    async def half(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.event("ADDED", pod("ghost", 1))
        answer.drop()

    script = Steps(half, initial(pod("a", 2), version="3"))

    async def main() -> None:
        async with reflecting(script) as (_, noted, _):
            await until(lambda: "synced" in noted.seen)
            assert noted.seen == ["+a@2", "synced"]

    run(main())


@pytest.mark.parametrize(
    "refusal", [refuse(400, "BadRequest"), refuse(422, "Invalid", "sendInitialEvents is forbidden")]
)
def test_servers_that_do_not_stream_lists(refusal: Step) -> None:
    """Pages are listed instead, the watch starts where the list ended, and streaming is not tried again."""
    script = Steps(
        refusal,
        page("10", pod("a", 1), token="next"),
        page("10", pod("b", 2)),
        watch(event("ADDED", pod("c", 11)), gone),
        page("20", pod("c", 11)),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: len(server.requests) == 6)
            assert noted.seen == ["+a@1", "+b@2", "synced", "+c@11", "-a@1", "-b@2"]
            queries = [request.query for request in server.requests]
            assert (queries[1]["limit"], queries[1]["resourceVersion"]) == ("500", "0")
            assert (queries[2]["continue"], queries[2].get("resourceVersion")) == ("next", None)
            assert (queries[3]["watch"], queries[3]["resourceVersion"]) == ("true", "10")
            assert (queries[4]["resourceVersion"], "watch" in queries[4]) == ("11", False)

    run(main())


def test_expired_page_token_causes_one_full_list() -> None:
    """When a continue token expires, the whole list is requested at once."""
    script = Steps(
        refuse(400),
        page("10", pod("a", 1), token="next"),
        refuse(410, "Expired"),
        page("12", pod("a", 1), pod("b", 12)),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: "synced" in noted.seen)
            assert noted.seen == ["+a@1", "+b@12", "synced"]
            assert server.requests[3].query == {
                "resourceVersion": "0",
                "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
            }

    run(main())


def test_dropped_watch_resumes_from_the_last_event() -> None:
    """The watch resumes from the last event or bookmark: no new list, no event twice or missed."""
    script = Steps(
        then(initial(pod("a", 1), version="5"), event("ADDED", pod("b", 6)), drop),
        watch(lambda answer: answer.bookmark("9"), drop),
        watch(event("MODIFIED", pod("b", 10))),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: len(noted.seen) == 4)
            assert noted.seen == ["+a@1", "synced", "+b@6", "b@6>10"]
            assert [request.query.get("resourceVersion") for request in server.requests] == [None, "6", "9"]

    run(main())


def test_watch_that_the_server_ends_is_opened_again_at_once() -> None:
    """The regular end of a watch is not an error: no delay."""
    script = Steps(
        then(initial(pod("a", 1), version="5"), lambda answer: answer.end_stream()),
        watch(event("MODIFIED", pod("a", 6))),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: len(noted.seen) == 3, seconds=0.5)
            assert server.connections == 1

    run(main())


def test_kept_alive_connection_closed_meanwhile_causes_no_delay() -> None:
    """A watch on a connection that the server is just closing is opened on another connection at once."""

    async def closing(request: Request, answer: Answer) -> None:
        answer.drop()

    script = Steps(
        then(initial(pod("a", 1), version="5"), lambda answer: answer.end_stream()),
        closing,
        watch(event("MODIFIED", pod("a", 6))),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: len(noted.seen) == 3, seconds=0.5)
            assert server.connections == 2

    run(main())


def test_gone_position_is_listed_again() -> None:
    """410, as an event or a response, causes a new list not older than the position, which delivers the differences."""
    script = Steps(
        then(initial(pod("a", 1), pod("b", 2), version="5"), gone),
        then(initial(pod("b", 8), pod("c", 9), version="20"), drop),
        refuse(410, "Expired"),
        initial(pod("c", 9), version="30"),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: noted.seen[-1:] == ["-b@8"])
            assert noted.seen == ["+a@1", "+b@2", "synced", "-a@1", "b@2>8", "+c@9", "-b@8"]
            versions = [request.query.get("resourceVersion") for request in server.requests]
            assert versions == [None, "5", "20", "20"]

    run(main())


def test_position_that_the_server_never_reaches_is_forgotten() -> None:
    """After a restore from backup the server may be older than the position: the next list accepts any version."""
    too_large = refuse(504, "Timeout", "Too large resource version: 500, current: 7")
    script = Steps(then(initial(version="500"), gone), too_large, initial(pod("a", 3), version="7"))

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: "+a@3" in noted.seen)
            assert [request.query.get("resourceVersion") for request in server.requests] == [None, "500", None]

    run(main())


def test_half_line_at_the_end_is_not_an_event() -> None:
    """A line cut off by a drop is ignored and received again completely."""
    whole = line("ADDED", pod("b", 6))
    script = Steps(
        then(initial(version="5"), lambda answer: answer.chunk(whole[:40]), drop),
        watch(lambda answer: answer.chunk(whole[:40]), lambda answer: answer.chunk(whole[40:])),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: "+b@6" in noted.seen)
            assert server.requests[1].query["resourceVersion"] == "5"
            assert noted.seen == ["synced", "+b@6"]

    run(main())


def test_invalid_json_ends_the_watch_and_keeps_the_state() -> None:
    """A line that is not JSON ends the connection; the watch resumes before it."""
    script = Steps(
        then(initial(pod("a", 1), version="5"), lambda answer: answer.chunk(b"<html>oops</html>\n")),
        watch(event("MODIFIED", pod("a", 6))),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: "a@1>6" in noted.seen)
            assert server.requests[1].query["resourceVersion"] == "5"

    run(main())


def test_silent_watch_is_opened_again() -> None:
    """A connection without data for two and a half minutes is considered dead."""
    script = Steps(initial(pod("a", 1), version="5"), watch(event("MODIFIED", pod("a", 6))))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with reflecting(script) as (server, noted, _):
            await until(lambda: "synced" in noted.seen)
            started = loop.time()
            await until(lambda: "a@1>6" in noted.seen)
            assert 150 <= loop.time() - started < 155
            assert server.requests[1].query["resourceVersion"] == "5"

    run(main())


def test_server_that_ignores_the_watch_list_is_listed() -> None:
    """Without the bookmark at the end of the initial objects a plain list is requested after a while."""

    async def ignorant(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.event("ADDED", pod("a", 1))

    script = Steps(ignorant, page("5", pod("a", 1)))

    async def main() -> None:
        async with reflecting(script) as (_, noted, _):
            await until(lambda: "synced" in noted.seen, seconds=35)
            assert noted.seen == ["+a@1", "synced"]

    run(main())


def test_server_that_ends_the_stream_too_early_is_listed() -> None:
    """If the stream ends before the bookmark of the initial objects, a plain list is requested at once."""

    async def brief(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.event("ADDED", pod("ghost", 1))
        answer.end_stream()

    script = Steps(brief, page("5", pod("a", 1)))

    async def main() -> None:
        async with reflecting(script) as (_, noted, _):
            await until(lambda: "synced" in noted.seen)
            assert noted.seen == ["+a@1", "synced"]

    run(main())


def test_a_server_that_is_not_an_api_server_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A proxy answers every request with a login page: nothing is synced, and the log contains the reason."""

    async def log_in(request: Request, answer: Answer) -> None:
        answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n<html>Log in!</html>")

    async def main() -> None:
        async with reflecting(log_in) as (_, noted, _):
            await until(lambda: bool(caplog.records), seconds=5)
            assert noted.seen == []

    with caplog.at_level(logging.WARNING, "kubestow"):
        run(main())
    assert "JSON" in caplog.text


def test_delays_grow_and_are_jittered() -> None:
    """While the server fails, the delays are 0.8 s doubling to 30 s, times the jitter."""
    times: list[float] = []

    async def failing(request: Request, answer: Answer) -> None:
        times.append(asyncio.get_running_loop().time())
        answer.drop()

    async def main() -> None:
        async with reflecting(failing):
            await until(lambda: len(times) >= 9)
        pauses = [round(later - earlier, 1) for earlier, later in itertools.pairwise(times)]
        assert pauses == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45.0, 45.0], abs=0.3)

    run(main())


def test_retry_after_lengthens_the_delay() -> None:
    """After a 429 the watch waits for the time that the server sets."""
    script = Steps(refuse(429, "TooManyRequests", Retry_After="90"), initial(pod("a", 1), version="5"))

    async def main() -> None:
        started = asyncio.get_running_loop().time()
        async with reflecting(script) as (_, noted, _):
            await until(lambda: "synced" in noted.seen)
            assert asyncio.get_running_loop().time() - started >= 90

    run(main())


def test_position_without_progress_is_listed_again() -> None:
    """After three failures of a watch in a row without an event a list follows."""
    failure = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "cannot decode"}
    script = Steps(
        then(initial(pod("a", 1), version="5"), drop),
        watch(event("ERROR", failure)),
        refuse(500, "InternalError"),
        initial(pod("a", 9), version="10"),
    )

    async def main() -> None:
        async with reflecting(script) as (server, noted, _):
            await until(lambda: "a@1>9" in noted.seen)
            assert "sendInitialEvents" in server.requests[3].query

    run(main())


def test_missing_resource_counts_as_empty(caplog: pytest.LogCaptureFixture) -> None:
    """A missing resource is logged once and synced as empty; when it appears, its objects are delivered."""
    caplog.set_level(logging.INFO)
    classes = Resource("resource.k8s.io", "v1", "deviceclasses", DeviceClass)
    script = Steps(refuse(404, "NotFound"), refuse(404), refuse(404), then(initial(node("gpu", 3), version="5"), drop))

    async def main() -> None:
        async with reflecting(script, classes) as (_, noted, informer):
            await informer.synced.wait()
            refused = "deviceclasses.resource.k8s.io: the API server does not have them"
            assert (noted.seen, informer.unreadable) == ([refused], refused)
            await until(lambda: "available now" in caplog.text)
            assert (noted.seen, informer.unreadable) == ([refused, "+gpu@3", "synced"], "")

    run(main())
    assert caplog.text.count("does not have them") == 1
    assert 'resource="deviceclasses.resource.k8s.io" version="v1"' in caplog.text
    assert "continuing without them" in caplog.text


@pytest.mark.parametrize(("code", "words"), [(403, "forbids to list and watch them"), (404, "does not have them")])
def test_optional_resource_is_requested_less_and_less_often(
    code: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The delays grow from short ones, as a right may just be missing, to minutes; it is logged once."""
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async with reflecting(Steps(*[refuse(code)] * 99), DEVICE_CLASSES) as (server, noted, informer):
            await informer.synced.wait()
            await asyncio.sleep(60)
            assert 5 <= len(server.requests) <= 7
            await asyncio.sleep(3600)
            assert len(server.requests) < 20
            assert noted.seen == [f"deviceclasses.resource.k8s.io: the API server {words}"]

    run(main())
    assert caplog.text.count(words) == 1


def test_resource_that_becomes_forbidden_keeps_its_objects() -> None:
    """The last objects stay, and the informer reports why they can no longer be read."""
    drop_then_refuse = then(initial(node("gpu", 3), version="5"), drop)

    async def main() -> None:
        async with reflecting(Steps(drop_then_refuse, refuse(403)), DEVICE_CLASSES) as (_, noted, informer):
            await until(lambda: informer.unreadable != "")
            assert list(informer.objects) == ["gpu"]
            assert noted.seen == ["+gpu@3", "synced", informer.unreadable]

    run(main())


def test_forbidden_required_resource_is_not_synced(caplog: pytest.LogCaptureFixture) -> None:
    """Forbidden nodes are logged once as an error, and not synced until they are allowed."""
    script = Steps(*[refuse(403, "Forbidden", "cannot list nodes")] * 4, initial(node("n", 1), version="5"))

    async def main() -> None:
        async with reflecting(script, NODES) as (server, noted, _):
            await until(lambda: len(server.requests) == 4)
            assert noted.seen == []
            await until(lambda: "synced" in noted.seen)

    run(main())
    assert caplog.text.count("forbids to list and watch") == 1
    assert "cannot continue until" in caplog.text

"""Recording of events: series, retries and limits; recording never waits."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import ObjectReference
from kubestow.client.events import EventRecorder
from kubestow.client.leases import LeaseLock
from kubestow.client.ratelimit import TokenBucket
from kubestow.client.requests import Requests
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.doubles import SkewedClock, middle
from support.client.scripted import Answer, Request, Script, ScriptedServer, client_of, opened, serving
from support.client.virtualtime import run

POD = ObjectReference(kind="Pod", apiVersion="v1", namespace="default", name="p", uid="u", resourceVersion="7")


async def accept(request: Request, answer: Answer) -> None:
    answer.reply(201)


@contextlib.asynccontextmanager
async def recording(script: Script, **options: Any) -> AsyncIterator[tuple[ScriptedServer, EventRecorder]]:
    async with serving(script) as server:
        with opened(server) as channel:
            limiter = options.pop("limiter", None)
            recorder = EventRecorder(
                Requests(client_of(channel, limiter)), hostname="vm", clock=SkewedClock(), random=middle, **options
            )
            task = asyncio.create_task(recorder.run())
            try:
                yield server, recorder
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task


def scheduled(recorder: EventRecorder, regarding: ObjectReference = POD, note: str = "Successfully assigned") -> None:
    recorder.record("default-scheduler", regarding, "Normal", "Scheduled", "Binding", note)


def test_first_event_is_created() -> None:
    """The body contains the reporter, the reason and the object; its name is the object's name and the time."""

    async def main() -> None:
        async with recording(accept) as (server, recorder):
            scheduled(recorder)
            assert await recorder.drain(5)
            [request] = server.requests
            body = request.json
            assert request.target == "/apis/events.k8s.io/v1/namespaces/default/events"
            assert body["metadata"]["name"].startswith("p.")
            assert int(body["metadata"]["name"].split(".")[1], 16) > 1_700_000_000 * 10**9
            assert (body["reportingController"], body["reportingInstance"]) == (
                "default-scheduler",
                "default-scheduler-vm",
            )
            assert body["regarding"]["resourceVersion"] == "7"
            assert "series" not in body
            assert "related" not in body

    run(main())


def test_the_stages_of_an_event_are_measured() -> None:
    """The metrics record when an event starts to wait, when it is being written, and when it is done."""

    async def main() -> None:
        metrics = ClientMetrics()
        async with recording(accept, metrics=metrics) as (_, recorder):
            scheduled(recorder)
            assert metrics.work_depth.read() == {("events",): 1}
            assert await recorder.drain(5)
            assert metrics.work_adds.read() == {("events",): 1}
            for seconds in (metrics.work_waited, metrics.work_seconds):
                assert sum(seconds.read()["events",].counts) == 1
            for gauge in (metrics.work_depth, metrics.work_unfinished, metrics.work_longest):
                assert gauge.read() == {("events",): 0}

    run(main())


def test_repeated_event_becomes_a_series() -> None:
    """The second event of a kind patches the first, later ones increment the count, which is written at the end."""

    async def main() -> None:
        async with recording(accept) as (server, recorder):
            for _ in range(5):
                scheduled(recorder)
                assert await recorder.drain(5)
                await asyncio.sleep(1)
            assert [request.method for request in server.requests] == ["POST", "PATCH"]
            name = server.requests[0].json["metadata"]["name"]
            patch = server.requests[1]
            assert patch.target == f"/apis/events.k8s.io/v1/namespaces/default/events/{name}"
            assert patch.headers["content-type"] == "application/strategic-merge-patch+json"
            assert patch.json["series"]["count"] == 2
            await asyncio.sleep(500)
            assert [request.method for request in server.requests] == ["POST", "PATCH", "PATCH"]
            assert server.requests[2].json["series"]["count"] == 5
            scheduled(recorder)
            assert await recorder.drain(5)
            assert server.requests[3].method == "POST"

    run(main())


def test_long_series_is_refreshed_every_half_hour() -> None:
    """A continuing series is written again, so that it does not expire at the server."""

    async def main() -> None:
        async with recording(accept) as (server, recorder):
            for _ in range(25):
                scheduled(recorder)
                await asyncio.sleep(100)
            counts = [request.json["series"]["count"] for request in server.requests[1:]]
            assert counts[0] == 2
            assert len(counts) == 2
            assert counts[1] > 15

    run(main())


def test_different_events_are_not_merged() -> None:
    """Events differ if the object, its version or the reason differs; the note does not matter."""

    async def main() -> None:
        async with recording(accept) as (server, recorder):
            scheduled(recorder)
            scheduled(recorder, ObjectReference(kind="Pod", namespace="default", name="p", resourceVersion="8"))
            recorder.record("default-scheduler", POD, "Warning", "FailedScheduling", "Scheduling", "no")
            recorder.record("other-scheduler", POD, "Normal", "Scheduled", "Binding", "yes")
            scheduled(recorder, note="to another node")
            assert await recorder.drain(5)
            assert [request.method for request in server.requests] == ["POST"] * 4 + ["PATCH"]

    run(main())


def test_expired_event_is_created_again_with_its_series() -> None:
    """Events expire at the server: if a patch finds no event, it is created again with its count."""

    async def forgetful(request: Request, answer: Answer) -> None:
        if request.method == "PATCH":
            answer.error(404, "NotFound")
        else:
            answer.reply(201)

    async def main() -> None:
        async with recording(forgetful) as (server, recorder):
            scheduled(recorder)
            scheduled(recorder)
            assert await recorder.drain(5)
            assert [request.method for request in server.requests] == ["POST", "PATCH", "POST"]
            assert server.requests[2].json["series"]["count"] == 2
            assert server.requests[2].json["metadata"] == server.requests[0].json["metadata"]

    run(main())


def test_unreachable_server_is_retried() -> None:
    """Without a response an event is tried about every ten seconds, at most twelve times."""
    times: list[float] = []

    async def dead(request: Request, answer: Answer) -> None:
        times.append(asyncio.get_running_loop().time())
        answer.drop()

    async def main() -> None:
        async with recording(dead) as (_, recorder):
            scheduled(recorder)
            assert await recorder.drain(500)
        assert len(times) == 12
        assert times[1] - times[0] == pytest.approx(10 * 1.125, abs=0.5)

    run(main())


def test_rejected_event_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """An event that the server rejects is not retried."""

    async def refuse(request: Request, answer: Answer) -> None:
        answer.error(403, "Forbidden", "the namespace is being terminated")

    async def main() -> None:
        async with recording(refuse) as (server, recorder):
            scheduled(recorder)
            assert await recorder.drain(5)
            assert len(server.requests) == 1

    with caplog.at_level(logging.WARNING):
        run(main())
    assert "being terminated" in caplog.text


def test_an_event_that_exists_already_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """Its series was written first, by a patch that found no event and created it: nothing is missing."""

    async def exists(request: Request, answer: Answer) -> None:
        answer.error(409, "AlreadyExists", "it already exists")

    async def main() -> None:
        async with recording(exists) as (server, recorder):
            scheduled(recorder)
            assert await recorder.drain(5)
            assert len(server.requests) == 1

    with caplog.at_level(logging.WARNING):
        run(main())
    assert caplog.text == ""


def test_stalled_server_never_blocks_the_caller() -> None:
    """With a server that does not respond, recording returns at once; beyond the limit events are dropped."""

    async def stall(request: Request, answer: Answer) -> None:
        await answer.client_left()

    async def main() -> None:
        async with recording(stall, max_pending=100) as (_, recorder):
            before = asyncio.get_running_loop().time()
            for number in range(300):
                scheduled(recorder, ObjectReference(kind="Pod", namespace="default", name=f"p{number}"))
            assert asyncio.get_running_loop().time() - before < 1.0
            assert recorder.dropped == 200
            assert not await recorder.drain(1)

    run(main())


def test_rate_limit_of_the_client_applies() -> None:
    """Events are sent no faster than the rate limit of their client."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with recording(accept, limiter=TokenBucket(10.0, 5, loop)) as (server, recorder):
            started = loop.time()
            for number in range(45):
                scheduled(recorder, ObjectReference(kind="Pod", namespace="default", name=f"p{number}"))
            assert await recorder.drain(60)
            assert loop.time() - started == pytest.approx(4.0, abs=0.5)
            assert len(server.requests) == 45

    run(main())


@pytest.mark.parametrize("name", ["system:thing", "UPPER", "x" * 250])
def test_object_names_that_events_cannot_have(name: str) -> None:
    """An event about an object whose name is not a valid event name gets a random name."""

    async def main() -> None:
        async with recording(accept) as (server, recorder):
            scheduled(recorder, ObjectReference(kind="ClusterRole", name=name))
            assert await recorder.drain(5)
            body = server.requests[0].json
            assert len(body["metadata"]["name"]) == 36
            assert body["metadata"]["namespace"] == "default"

    run(main())


def test_invalid_kind_of_event() -> None:
    """Only Normal and Warning are valid."""

    async def main() -> None:
        async with recording(accept) as (_, recorder):
            with pytest.raises(ValueError, match="Normal or Warning"):
                recorder.record("s", POD, "Fatal", "r", "a", "n")

    run(main())


def test_election_is_announced_as_a_core_event() -> None:
    """A new leader is reported by a core/v1 event about the lease."""

    async def main() -> None:
        async with recording(accept) as (server, recorder):
            lock = LeaseLock(recorder._requests, "kube-system", "kube-scheduler", "host-1_x")
            recorder.announce("default-scheduler", lock, "became leader")
            assert await recorder.drain(5)
            [request] = server.requests
            assert request.target == "/api/v1/namespaces/kube-system/events"
            assert request.json["message"] == "host-1_x became leader"

    run(main())


def test_the_number_of_recent_events_is_limited() -> None:
    """The oldest are forgotten: the next equal event is a new one. A series that is forgotten is written first."""

    async def main() -> None:
        async with recording(accept, max_known=2) as (server, recorder):
            pods = [msgspec.structs.replace(POD, name=name) for name in "abc"]
            for pod in pods:
                scheduled(recorder, pod)
            scheduled(recorder, pods[0])
            assert await recorder.drain(5)
            assert [request.method for request in server.requests] == ["POST"] * 4
            for pod in pods[::-1]:
                for _ in range(2):
                    scheduled(recorder, pod)
            assert await recorder.drain(5)
            patches = [request for request in server.requests if request.method == "PATCH"]
            counts = [(request.target.rsplit("/", 1)[1][0], request.json["series"]["count"]) for request in patches]
            assert sorted(counts) == [("a", 2), ("b", 2), ("c", 2), ("c", 3)]

    run(main())

"""List and watch of kinds that plugins declare, whose definitions come and go."""

import asyncio
from typing import Any

import pytest

from kubestow.api.custom_kinds import CustomObject, custom_resource
from kubestow.client.resources import declared_resource
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.doubles import node
from support.client.scripted import Answer, Request, Script
from support.client.virtualtime import run
from support.client.watching import Steps, drop, initial, reflecting, refuse, then, until


@custom_resource("example.com/v2", "widgets")
class Widget(CustomObject, frozen=True):
    size: int = 0


WIDGETS: Any = declared_resource(Widget)
NOT_SERVED = "widgets.example.com: the API server does not have them"


def discovery(**resources: list[str]) -> Script:
    """Return a script that serves an API group with these resources by version, and no objects of version v2."""

    async def script(request: Request, answer: Answer) -> None:
        *_, last = request.path.split("/")
        if request.path == "/apis/example.com":
            answer.reply(200, {"versions": [{"version": version} for version in resources]})
        elif last in resources:
            answer.reply(200, {"resources": [{"name": name} for name in resources[last]]})
        else:
            answer.error(404, "NotFound")

    return script


def test_declared_kind_is_requested_again_within_half_a_minute() -> None:
    """Its definition is often installed while the scheduler runs."""
    metrics = ClientMetrics()

    async def main() -> None:
        async with reflecting(discovery(), WIDGETS, metrics) as (server, noted, informer):
            await informer.synced.wait()
            assert noted.seen == [NOT_SERVED]
            assert metrics.informer_unreadable.read() == {WIDGETS.labels: 1}
            await asyncio.sleep(600)
            count = len(server.requests)
            await asyncio.sleep(600)
            assert len(server.requests) - count >= 15

    run(main())


def test_other_served_version_of_a_declared_kind_is_named() -> None:
    """Versions of the group that do not have the resource are not."""

    async def main() -> None:
        async with reflecting(discovery(v1=["widgets"], v3=["gadgets"]), WIDGETS) as (_, noted, informer):
            await informer.synced.wait()
            assert noted.seen == ["widgets.example.com: the API server has them as v1 only, not v2"]

    run(main())


def test_objects_of_a_removed_definition_are_gone() -> None:
    """They are deleted, and listed again from the beginning when the definition is installed again."""
    again = then(initial(node("b", 7), version="9"))
    script = Steps(then(initial(node("a", 3), version="5"), drop), refuse(404), refuse(404), refuse(404), again)

    async def main() -> None:
        async with reflecting(script, WIDGETS) as (_, noted, _informer):
            await until(lambda: "+b@7" in noted.seen)
            assert noted.seen == ["+a@3", "synced", "-a@3", NOT_SERVED, "+b@7", "synced"]

    run(main())


def test_broken_api_of_a_declared_kind_counts_as_unavailable() -> None:
    """The scheduler starts; the objects are delivered once the API works."""
    broken = refuse(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    script = Steps(*[broken] * 8, initial(node("a", 3), version="5"))

    async def main() -> None:
        async with reflecting(script, WIDGETS) as (_, noted, informer):
            await informer.synced.wait()
            assert "unable to handle the request" in noted.seen[0]
            await until(lambda: "+a@3" in noted.seen)
            assert informer.unreadable == ""

    run(main())


def test_objects_that_cannot_be_decoded_do_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    """The message names object and field."""
    bad = {"metadata": {"name": "bad", "resourceVersion": "4"}, "size": "large"}
    metrics = ClientMetrics()

    async def main() -> None:
        script = Steps(initial(node("a", 3), bad, version="5"))
        async with reflecting(script, WIDGETS, metrics) as (_, noted, informer):
            await informer.synced.wait()
            assert noted.seen == ["+a@3", "synced"]
            assert metrics.informer_undecodable.read() == {WIDGETS.labels: 1}
            assert metrics.informer_unreadable.read() == {WIDGETS.labels: 0}

    run(main())
    assert "bad" in caplog.text
    assert "$.size" in caplog.text

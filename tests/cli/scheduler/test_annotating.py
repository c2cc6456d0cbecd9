"""Decisions on their way to pods as annotations."""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.cli.scheduler.annotator import Annotator
from kubestow.insight.decisions.annotations import MOST_BYTES, PREFIX
from kubestow.testing import SchedulerHarness, make_node, make_pod

SELECTED = PREFIX + "selected-node"


def written(annotations: dict[str, str]) -> list[dict[str, str | None]]:
    """What is written to a pod that has these annotations when it is bound."""
    found: list[dict[str, str | None]] = []

    async def annotate(_pod: Pod, changes: Mapping[str, str | None]) -> None:
        found.append(dict(changes))

    async def main() -> None:
        with SchedulerHarness(record_bytes=1 << 24) as world:
            pod = make_pod("p", cpu="1")
            pod = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
            assert world.decisions is not None
            annotator = Annotator(world.decisions, lambda _uid: pod, annotate)
            world.cluster.add(make_node("n1", cpu="2"))
            world.cluster.add(pod)
            world.run_until_idle()
            task = asyncio.create_task(annotator.run())
            await asyncio.sleep(0)
            task.cancel()

    asyncio.run(main())
    return found


def test_a_pod_without_room_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """The API server would refuse it; one line says why. What is there of an earlier decision goes."""
    full = {"mine": "x" * (MOST_BYTES - 100)}
    said = 'A decision was not written to its pod reason="its other annotations leave too few bytes" bytesLeft=96'
    assert written(full) == []
    assert caplog.messages == [f'{said} pod="default/p"']
    assert written(full | {SELECTED: "n0"}) == [{SELECTED: None}]


def test_what_there_is_room_for_is_written(caplog: pytest.LogCaptureFixture) -> None:
    """Nodes are left out first."""
    (changes,) = written({"mine": "x" * (MOST_BYTES - 2_000)})
    assert changes[SELECTED] == "n1"
    assert PREFIX + "filter-result" not in changes
    (changes,) = written({"mine": "stays"})
    assert "mine" not in changes
    assert PREFIX + "filter-result" in changes
    assert caplog.messages == []


def test_a_decision_by_a_profile_that_was_reloaded() -> None:
    """It is written in terms of the plugins that decided, although the profile has others by now."""
    found: list[Mapping[str, str | None]] = []

    async def annotate(_pod: Pod, changes: Mapping[str, str | None]) -> None:
        found.append(changes)

    async def main() -> None:
        with SchedulerHarness(record_bytes=1 << 24) as world:
            assert world.decisions is not None
            pod = make_pod("p", cpu="1", claims=["missing"])
            annotator = Annotator(world.decisions, lambda _uid: pod, annotate)
            world.cluster.add(make_node("n1", cpu="2"))
            world.cluster.add(pod)
            world.run_for(0.1)
            (record,) = world.decisions
            assert world.core.profiles[record.profile] is record.by
            world.core.profiles.clear()
            task = asyncio.create_task(annotator.run())
            await asyncio.sleep(0)
            task.cancel()

    asyncio.run(main())
    (changes,) = found
    assert "VolumeRestrictions" in str(changes[PREFIX + "prefilter-result-status"])

"""The harness: a whole scheduler in virtual time, which does not hide what goes wrong in it."""

import asyncio
import gc
import re
from typing import Any

import pytest

from kubestow.testing import SchedulerHarness, StuckError, make_node, make_pod


def test_the_harness_runs_in_real_time_too() -> None:
    """On a loop of another kind the scheduler runs in that loop's time; virtual driving is refused."""

    async def main() -> str:
        async with SchedulerHarness(loop=asyncio.get_running_loop()) as harness:
            harness.cluster.add(make_node("n1"))
            harness.cluster.add(make_pod("p1"))
            await harness.until_idle()
            with pytest.raises(TypeError, match="until_idle"):
                harness.run_for(1.0)
            return harness.cluster.node_of("p1")

    assert asyncio.run(main()) == "n1"


def test_leaving_a_loop_that_runs_leaves_nothing_behind() -> None:
    """Bindings and writes under way are over when `async with` is; closing it any other way is refused."""

    async def main() -> set[Any]:
        async with SchedulerHarness(loop=asyncio.get_running_loop(), latency=0.2) as harness:
            harness.cluster.add(make_node("n1", cpu="1"))
            for name in ("p1", "p2"):
                harness.cluster.add(make_pod(name, cpu="1"))
            for _ in range(20):
                await asyncio.sleep(0)
            assert harness.place_of("p1") == "binding"
            with pytest.raises(TypeError, match="async with"):
                harness.close()
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(main()) == set()


def test_what_a_callback_raises_is_raised_by_whoever_drives() -> None:
    """asyncio would log it and go on, and the test would pass."""
    with SchedulerHarness() as harness:
        harness.loop.call_later(1.0, lambda: 1 // 0)
        harness.run_for(0.5)
        with pytest.raises(ZeroDivisionError):
            harness.run_for(1.0)
        harness.run_for(1.0)


def test_a_scheduler_that_died_is_not_taken_for_one_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error that ended it is raised, not that nothing happens any more."""
    with SchedulerHarness() as harness:
        monkeypatch.setattr(harness.core.queue, "pop", lambda: 1 // 0)
        harness.cluster.add(make_pod("p1"))
        with pytest.raises(ZeroDivisionError):
            harness.run_until_idle()


def test_being_stuck_says_where_the_pods_are() -> None:
    """Even of pods that the server no longer has, and the scheduler has not heard so."""
    with SchedulerHarness() as harness:
        harness.cluster.add(make_node("n1", cpu="1"))
        pod = harness.cluster.add(make_pod("p1", cpu="2"))
        harness.run_until_idle()
        harness.cluster.go_away_for(100.0)
        harness.cluster.delete(pod)
        with pytest.raises(StuckError, match=re.escape("after 10 s of virtual time: unschedulable: default/p1")):
            harness.run_until_idle(10.0)


def test_closing_leaves_nothing_running(capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever was under way is stopped and awaited: nothing is left that could complain later."""
    harness = SchedulerHarness(latency=5.0)
    harness.cluster.add(make_node("n1", cpu="1"))
    for name in ("p1", "p2"):
        harness.cluster.add(make_pod(name, cpu="1"))
    harness.run_for(1.0)
    assert harness.place_of("p1") == "binding"
    harness.close()
    harness.close()
    assert asyncio.all_tasks(harness.loop) == set()
    del harness
    gc.collect()
    assert capfd.readouterr().err == ""

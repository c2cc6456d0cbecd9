"""The harness: a complete scheduler in virtual time, which does not hide errors."""

import asyncio
import gc
import re
from typing import Any

import pytest

from kubestow.plugin import Pod
from kubestow.testing import SchedulerHarness, StuckError, make_node, make_pod


def test_the_harness_runs_in_real_time_too() -> None:
    """On another event loop, the scheduler uses the time of that loop; virtual driving is rejected."""

    async def main() -> str:
        async with SchedulerHarness(loop=asyncio.get_running_loop()) as harness:
            harness.cluster.add(make_node("n1"))
            harness.cluster.add(make_pod("p1"))
            await harness.until_idle()
            with pytest.raises(TypeError, match="until_idle"):
                harness.run_for(1.0)
            return harness.cluster.node_of("p1")

    assert asyncio.run(main()) == "n1"


def test_leaving_the_context_finishes_all_work() -> None:
    """Bindings and writes are finished when `async with` ends; closing in any other way is rejected."""

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


def test_errors_of_callbacks_are_raised_by_the_driving_call() -> None:
    """asyncio would log them and continue, and the test would pass."""
    with SchedulerHarness() as harness:
        harness.loop.call_later(1.0, lambda: 1 // 0)
        harness.run_for(0.5)
        with pytest.raises(ZeroDivisionError):
            harness.run_for(1.0)
        harness.run_for(1.0)


def test_a_failed_scheduler_is_not_reported_as_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the scheduler is raised instead of StuckError."""
    with SchedulerHarness() as harness:
        monkeypatch.setattr(harness.core.queue, "pop", lambda: 1 // 0)
        harness.cluster.add(make_pod("p1"))
        with pytest.raises(ZeroDivisionError):
            harness.run_until_idle()


def test_a_stuck_error_lists_the_pods() -> None:
    """It includes pods that the server has deleted, but the scheduler has not been notified of."""
    with SchedulerHarness() as harness:
        harness.cluster.add(make_node("n1", cpu="1"))
        pod = harness.cluster.add(make_pod("p1", cpu="2"))
        harness.run_until_idle()
        harness.cluster.go_away_for(100.0)
        harness.cluster.delete(pod)
        with pytest.raises(StuckError, match=re.escape("after 10 s of virtual time: unschedulable: default/p1")):
            harness.run_until_idle(10.0)


def test_a_stuck_error_has_the_failure_of_a_plugin() -> None:
    """With its line; a test that waits for a failing pod needs no log."""

    class Broken:
        name = "Broken"

        def __init__(self, args: object, handle: object) -> None:
            pass

        def filter(self, state: object, pod: object, node: object) -> None:
            raise ValueError("no idea")

    with SchedulerHarness(plugins=[Broken]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p1"))
        with pytest.raises(
            StuckError, match=r'default/p1; latest failure: .* plugin "Broken": no idea \(.*_harness.py:\d'
        ):
            harness.run_until_idle(10.0)


def test_a_queue_sort_plugin_replaces_the_default_one() -> None:
    """A profile has only one."""

    class ByName:
        name = "ByName"

        def __init__(self, args: object, handle: object) -> None:
            pass

        def sort_key(self, pod: Pod, waiting_since: float) -> str:
            return pod.metadata.name

    with SchedulerHarness(plugins=[ByName]) as harness:
        for name in ("b", "c", "a"):
            harness.cluster.add(make_pod(name))
        harness.cluster.add(make_node("n1"))
        harness.run_until_idle()
        assert list(harness.bindings) == ["default/a", "default/b", "default/c"]


def test_closing_leaves_nothing_running(capfd: pytest.CaptureFixture[str]) -> None:
    """Running tasks are cancelled and awaited, so that no warning follows."""
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

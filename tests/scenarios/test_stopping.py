"""Stopping the scheduler, whatever happens at the same time."""

import asyncio

import pytest

from kubestow.testing import SchedulerHarness, make_node, make_pod


@pytest.mark.parametrize("turns", range(6))
def test_a_scheduler_stops_though_work_arrives(turns: int) -> None:
    """It is cancelled some turns of the event loop after a pod was added, while it waits for the next retry."""

    async def stop() -> bool:
        scheduler.cluster.add(make_pod("late"))
        for _ in range(turns):
            await asyncio.sleep(0)
        scheduler._running.task.cancel()
        done, _ = await asyncio.wait({scheduler._running.task}, timeout=1000.0)
        return bool(done)

    with SchedulerHarness() as scheduler:
        scheduler.cluster.add(make_node("n", cpu="1"))
        scheduler.cluster.add(make_pod("big", cpu="2"))
        scheduler.run_for(1.0)
        assert scheduler.core.queue.next_wakeup() is not None
        assert scheduler.loop.run_until_complete(stop())

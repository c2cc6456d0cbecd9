"""The server starts after the first pods, or at once if there are none."""

import asyncio

import pytest

from kubestow.cli.scheduler.running import FIRST_PODS_DELAY, SERVING_DELAY, give_way
from kubestow.testing import SchedulerHarness, make_pod
from support.client.virtualtime import run


@pytest.mark.parametrize(
    ("is_synced", "pods", "seconds"),
    [(True, 0, 0.0), (True, 1, FIRST_PODS_DELAY), (False, 0, SERVING_DELAY), (False, 1, SERVING_DELAY)],
)
def test_pods_that_wait_come_first(is_synced: bool, pods: int, seconds: float) -> None:
    """Without pending pods there is nothing to wait for once the lists are complete."""

    async def waited() -> float:
        synced, loop = asyncio.Event(), asyncio.get_running_loop()
        if is_synced:
            synced.set()
        started = loop.time()
        await give_way(synced, harness.core.queue)
        return loop.time() - started

    with SchedulerHarness() as harness:
        for number in range(pods):
            harness.core.queue.add(make_pod(f"p{number}"))
        assert run(waited()) == pytest.approx(seconds, abs=0.001)

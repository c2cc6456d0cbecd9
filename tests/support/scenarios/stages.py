"""A scheduler in which every stage of a pod's binding takes five seconds, so that events can happen in between."""

import asyncio
from typing import Any

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Wait
from kubestow.testing import SchedulerHarness

STAGE = 5.0
WAITING, PRE_BINDING, BINDING = (0.5 * STAGE, 1.5 * STAGE, 2.5 * STAGE)
"""Times, in seconds after a pod was placed, in the middle of each stage."""
STAGES = {"waiting": WAITING, "pre-binding": PRE_BINDING, "binding": BINDING}


class Slow:
    """Permits after five seconds, and takes five seconds in PreBind; records its calls."""

    name = "Slow"
    calls: list[str] = []

    def __init__(self, args: Any, handle: Handle) -> None:
        self._handle = handle
        self.calls.clear()

    def reserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self.calls.append(f"reserve {pod.name}")

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self.calls.append(f"unreserve {pod.name}")

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait:
        asyncio.get_running_loop().call_later(STAGE, self._allow, pod.uid)
        return Wait(60.0)

    def _allow(self, uid: str) -> None:
        waiting = self._handle.waiting_pods.get(uid)
        if waiting is not None:
            waiting.allow(self.name)

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool:
        return True

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> None:
        self.calls.append(f"pre_bind {pod.name}")
        await asyncio.sleep(STAGE)
        self.calls.append(f"pre_bound {pod.name}")


def slow_bindings(harness: SchedulerHarness) -> None:
    """Delay bindings as well; not the other calls."""
    harness.cluster.slow["bind"] = STAGE

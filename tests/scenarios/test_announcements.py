"""The number of concurrent announcements of expected nodes is limited: the first pods of a burst are bound early."""

import asyncio
from typing import Any

from kubestow.scheduler.binding.binder import ANNOUNCEMENTS
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.start import Start

BURST = 3 * ANNOUNCEMENTS


class Prepares:
    """Has a PreBind; for pods called slow it takes a minute."""

    name = "Prepares"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool:
        return pod.name != "high"

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> None:
        if pod.name.startswith("slow"):
            await asyncio.sleep(60.0)


def burst(start: Start, name: str, **options: Any) -> SchedulerHarness:
    harness = start(plugins=[Prepares], **options)
    harness.cluster.add(make_node("n1", cpu=str(BURST), pods=str(2 * BURST)))
    for number in range(BURST):
        harness.cluster.add(make_pod(f"{name}{number}", cpu="1", priority=-number))
    return harness


def calls(harness: SchedulerHarness) -> list[str]:
    return [call.call for call in harness.cluster.calls]


def test_the_first_pods_of_a_burst_are_bound_before_all_are_announced(start: Start) -> None:
    """The binding of a pod does not wait for the announcements of all others."""
    harness = burst(start, "p", latency=1.0)
    harness.run_until_idle()
    made = calls(harness)
    assert (made.count("patch_pod_status"), made.count("bind")) == (BURST, BURST)
    assert "bind" in made[: 2 * ANNOUNCEMENTS + 1]
    assert harness.time == BURST / ANNOUNCEMENTS + 1.0


def test_a_long_pre_bind_does_not_block_announcements(start: Start) -> None:
    """All pods are announced while the first ones are in PreBind."""
    harness = burst(start, "slow", latency=1.0)
    harness.run_for(10.0)
    assert calls(harness) == ["patch_pod_status"] * BURST
    harness.run_until_idle()
    assert len(harness.bindings) == BURST


def test_a_pod_before_its_announcement_is_preempted_in_memory(start: Start) -> None:
    """It is being bound like pods in PreBind, and need not be deleted."""
    harness = burst(start, "p")
    harness.cluster.slow["patch_pod_status"] = 10.0
    harness.run_for(1.0)
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_for(1.0)
    last = f"p{BURST - 1}"
    assert harness.events.about(last)[0].note.endswith("(in kube-scheduler memory).")
    assert harness.events.about(last)[1].note == "preempted by DefaultPreemption"
    harness.run_until_idle()
    assert "delete_pod" not in calls(harness)
    assert len(harness.bindings) == BURST
    assert f"default/{last}" not in harness.bindings

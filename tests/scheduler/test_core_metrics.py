"""What a running scheduler counts of itself, read from the page that a monitoring system reads."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Wait
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.testing import SchedulerHarness, make_node, make_pod


class Patience:
    """Lets pods with the label wait for five seconds, in vain; nothing changes its mind."""

    name = "Patience"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def requeue_on(self) -> list[Any]:
        return []

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait | None:
        return Wait(5.0) if "wait" in pod.labels else None


FEATURES = config.Features(scheduler_async_api_calls=True, generic_workload=True)


class Watched(SchedulerHarness):
    """A scheduler with the page that a monitoring system reads."""

    def __init__(self) -> None:
        self.page = Metrics(features=FEATURES)
        super().__init__(plugins=[Patience], features=FEATURES, latency=0.25, metrics=self.page.scheduler)

    def read(self, name: str) -> dict[str, float]:
        """The numbers of one metric, by labels as they are written on the page."""
        lines = self.page.render()[0].decode().splitlines()
        samples = [line.rpartition(" ") for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
        return {sample.removeprefix(name): float(value) for sample, _, value in samples}


@pytest.fixture
def watched() -> Iterator[Watched]:
    with Watched() as watched:
        yield watched


def test_attempts_are_counted_by_how_they_end(watched: Watched) -> None:
    """Attempts are scheduled, unschedulable or errors; the totals of a pod are recorded once, when it is bound."""
    watched.cluster.add(make_node("n1", cpu="1"))
    watched.cluster.add(make_pod("p1", cpu="1"))
    watched.cluster.faults.fail("bind", "Conflict")
    watched.cluster.add(make_pod("big", cpu="2"))
    watched.run_for(10.0)
    profile = 'profile="default-scheduler",result='
    assert watched.read("scheduler_schedule_attempts_total") == {
        f'{{{profile}"scheduled"}}': 1,
        f'{{{profile}"unschedulable"}}': 2,
        f'{{{profile}"error"}}': 1,
    }
    assert watched.read("scheduler_pod_scheduling_attempts_count") == {"": 1}
    assert watched.read("scheduler_pod_scheduling_attempts_sum") == {"": 2}
    # Refused after a quarter of a second, tried again in the second after next, bound a quarter of a second later.
    assert watched.read("scheduler_pod_scheduling_sli_duration_seconds_sum") == {'{attempts="2"}': 2.25}
    assert sum(watched.read("scheduler_scheduling_algorithm_duration_seconds_count").values()) == 4


def test_updates_of_pending_pods_are_timed_by_what_changed(watched: Watched) -> None:
    """Each aspect of the pod has a label of its own, beside that of all updates."""
    watched.cluster.add(make_pod("p1", gates=["later"]))
    watched.cluster.update(make_pod("p1", gates=["later"], labels={"a": "b"}))
    watched.run_for(1.0)
    timed = watched.read("scheduler_event_handling_duration_seconds_count")
    events = ("UnscheduledPodAdd", "UnscheduledPodUpdate", "UnscheduledPodUpdatePodLabel")
    assert timed == {f'{{event="{event}"}}': 1 for event in events}


def test_gauges_say_where_pods_are(watched: Watched) -> None:
    """By queue, by the plugin that refused them, and how many are assumed."""
    watched.cluster.add(make_node("n1", cpu="1"))
    watched.cluster.add(make_pod("gated", gates=["later"]))
    watched.cluster.add(make_pod("big", cpu="2"))
    watched.cluster.add(make_pod("held", labels={"wait": "yes"}))
    watched.run_for(1.0)
    pending = {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1, "incomplete": 0, "pending": 0}
    assert watched.read("scheduler_pending_pods") == {f'{{queue="{name}"}}': n for name, n in pending.items()}
    sizes = watched.read("scheduler_cache_size")
    assert sizes == {'{type="assumed_pods"}': 1, '{type="nodes"}': 1, '{type="pods"}': 1}
    refused = watched.read("scheduler_unschedulable_pods")
    assert {labels for labels, count in refused.items() if count} == {
        '{plugin="NodeResourcesFit",profile="default-scheduler"}',
        '{plugin="SchedulingGates",profile="default-scheduler"}',
    }
    assert watched.read("scheduler_goroutines")['{operation="binding"}'] == 1
    assert watched.read("scheduler_permit_wait_duration_seconds_count") == {}
    watched.run_for(5.0)
    assert watched.read("scheduler_permit_wait_duration_seconds_sum") == {'{result="Unschedulable"}': 5.0}
    assert watched.read("scheduler_cache_size")['{type="assumed_pods"}'] == 0


def test_preemption_counts_attempts_and_victims(watched: Watched) -> None:
    """Victims that already terminate count as well, but are not evicted again."""
    watched.cluster.add(make_node("n1", cpu="2"))
    for number in range(2):
        watched.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, node="n1", grace_seconds=30))
    watched.cluster.add(make_pod("high", cpu="2", priority=10))
    watched.run_for(5.0)
    assert watched.read("scheduler_preemption_attempts_total") == {"": 1}
    assert watched.read("scheduler_preemption_victims_count") == {"": 1}
    assert watched.read("scheduler_preemption_victims_sum") == {"": 2}
    # Two victims, one after the other, each with a condition and then deleted.
    executions = "scheduler_preemption_execution_duration_seconds"
    assert watched.read(f"{executions}_sum") == {'{preemptor="pod",result="success"}': 1.0}
    watched.cluster.add(make_pod("higher", cpu="2", priority=20))
    watched.run_for(5.0)
    assert watched.cluster.pod("higher").status.nominatedNodeName == "n1"
    assert watched.read("scheduler_preemption_attempts_total") == {"": 2}
    assert watched.read("scheduler_preemption_victims_count") == {"": 2}
    assert watched.read(f"{executions}_count") == {'{preemptor="pod",result="success"}': 1}


def test_preemptions_are_timed_by_result(watched: Watched) -> None:
    """Finding victims, or that there are none; violated disruption budgets count when the victims are chosen."""
    watched.cluster.add(make_node("n1", cpu="1"))
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    watched.cluster.add(convert(PodDisruptionBudget, budget))
    watched.cluster.add(make_pod("low", cpu="1", node="n1", labels={"app": "web"}))
    watched.cluster.add(make_pod("equal", cpu="1"))
    watched.run_for(5.0)
    assert watched.read("scheduler_preemption_pdb_violations_total") == {}
    watched.cluster.add(make_pod("high", cpu="1", priority=10))
    watched.run_for(5.0)
    assert watched.read("scheduler_preemption_evaluation_duration_seconds_count") == {
        '{preemptor="pod",result="Success"}': 1,
        '{preemptor="pod",result="Unschedulable"}': 1,
    }
    assert watched.read("scheduler_preemption_pdb_violations_total") == {'{preemptor="pod"}': 1}


def test_a_refusal_that_preemption_cannot_help_is_no_attempt_at_it(watched: Watched) -> None:
    """A plugin that refused permission is not asked about victims."""
    watched.cluster.add(make_node("n1"))
    watched.cluster.add(make_pod("held", labels={"wait": "yes"}))
    watched.run_for(10.0)
    assert watched.read("scheduler_preemption_attempts_total") == {"": 0}


def test_evictions_that_fail_are_counted_as_such(watched: Watched) -> None:
    """The preemptor is tried again, and succeeds then."""
    watched.cluster.faults.fail("delete_pod", "Forbidden")
    watched.cluster.add(make_node("n1", cpu="1"))
    watched.cluster.add(make_pod("low", cpu="1", priority=0, node="n1", grace_seconds=1))
    watched.cluster.add(make_pod("high", cpu="1", priority=10))
    watched.run_for(30.0)
    assert watched.cluster.node_of("high") == "n1"
    results = watched.read("scheduler_preemption_goroutines_execution_total")
    assert results == {'{result="error"}': 1, '{result="success"}': 1}


def test_calls_are_counted_and_timed(watched: Watched) -> None:
    """By kind and result; a call that waits for an earlier one about its pod is pending until its turn."""
    watched.cluster.add(make_node("n1", cpu="1"))
    watched.cluster.faults.fail("bind", "Conflict")
    watched.cluster.add(make_pod("p1", cpu="1"))
    watched.cluster.add(make_pod("big", cpu="2"))
    watched.run_for(0.3)
    dispatcher, pod = watched.core.dispatcher, watched.cluster.pod("p1")
    binding = watched.loop.create_task(dispatcher.bind(pod, "n1"))
    watched.run_for(0.1)
    assert watched.read("scheduler_pending_async_api_calls") == {'{call_type="pod_binding"}': 1}
    watched.run_for(1.0)
    binding.result()
    assert watched.read("scheduler_pending_async_api_calls") == {'{call_type="pod_binding"}': 0}
    assert watched.read("scheduler_async_api_call_execution_total") == {
        '{call_type="pod_binding",result="error"}': 1,
        '{call_type="pod_binding",result="success"}': 1,
        '{call_type="pod_status_patch",result="success"}': 2,
    }
    seconds = watched.read("scheduler_async_api_call_execution_duration_seconds_sum")
    assert seconds['{call_type="pod_status_patch",result="success"}'] == 0.5

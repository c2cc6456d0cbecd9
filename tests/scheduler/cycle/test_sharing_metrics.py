"""The metrics of shared results."""

import random
from collections.abc import Sequence

from kubestow.config import default
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.scheduler.cycle.sharing import Upcoming
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing.builders import make_node, make_pod

NAME = "default-scheduler"


def measured(pods: Sequence[PodInfo], upcoming: Upcoming = lambda _limit: ()) -> SchedulerMetrics:
    """Return the metrics after scheduling pods."""
    cluster, metrics = Cluster(), SchedulerMetrics()
    for number in range(3):
        cluster.set_node(make_node(f"n{number}", cpu="4"))
    (profile,) = build_profiles(default(), in_tree_registry(), offline_handle(cluster), lambda: 0.0).values()
    choose = choose_at_random(random.Random(0))
    cycles = SchedulingCycles(cluster, Nominator(), choose, metrics=metrics, upcoming=upcoming)
    for pod in pods:
        cycles.run(profile, pod)
    return metrics


def equal_pods(count: int) -> list[PodInfo]:
    return [PodInfo(make_pod(f"p{number}", cpu="3")) for number in range(count)]


def test_pods_use_the_results_of_equal_pods() -> None:
    """The second equal pod caches results, which the pods after it use, even if no node is feasible."""
    metrics = measured(equal_pods(5))
    assert metrics.batch_attempts.read() == {(NAME, "no_hint"): 2, (NAME, "hint_used"): 3}
    assert metrics.store_schedule_results_seconds.read()[NAME,].counts[0] == 1


def test_the_first_pod_stores_results_for_an_equal_pod_that_follows() -> None:
    """The second pod uses them, as in kube-scheduler."""
    pods = equal_pods(5)
    coming = iter([*pods[1:], PodInfo(make_pod("other"))])
    metrics = measured(pods, lambda _limit: [next(coming)])
    assert metrics.batch_attempts.read() == {(NAME, "no_hint"): 1, (NAME, "hint_used"): 4}


def test_a_pod_followed_by_another_one_stores_nothing() -> None:
    """Its results would fill the cache for nothing."""
    pods = [PodInfo(make_pod(f"p{number}", cpu=f"{number}m")) for number in range(1, 4)]
    metrics = measured(pods, lambda _limit: [PodInfo(make_pod("other"))])
    assert not metrics.store_schedule_results_seconds.read()


def test_changed_nodes_are_evaluated_again_for_the_next_equal_pod() -> None:
    """Each time counts: after the second pod was placed and cached the results, the third one, then the fourth."""
    metrics = measured(equal_pods(4))
    assert metrics.batch_rescore_attempts.read() == {(NAME,): 2}
    assert sum(metrics.batch_rescore_seconds.read()[NAME,].counts) == 2

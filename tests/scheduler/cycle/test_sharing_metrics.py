"""The metrics of shared results."""

import random

from kubestow.config import default
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing.builders import make_node, make_pod


def test_pods_use_the_results_of_equal_pods() -> None:
    """The second equal pod caches results, which the pods after it use, even if no node is feasible."""
    cluster, metrics = Cluster(), SchedulerMetrics()
    for number in range(3):
        cluster.set_node(make_node(f"n{number}", cpu="4"))
    (profile,) = build_profiles(default(), in_tree_registry(), offline_handle(cluster), lambda: 0.0).values()
    choose = choose_at_random(random.Random(0))
    cycles = SchedulingCycles(cluster, Nominator(), choose, metrics=metrics)
    name = profile.name
    for number in range(5):
        cycles.run(profile, PodInfo(make_pod(f"p{number}", cpu="3")))
    assert metrics.batch_attempts.read() == {(name, "no_hint"): 2, (name, "hint_used"): 3}
    assert metrics.store_schedule_results_seconds.read()[name,].counts[0] == 1

"""How equal pods share is told to whoever measures."""

import random

from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.config import default
from kubestow.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.queue.nominator import Nominator
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import NoObserver, offline_handle
from kubestow.testing.observers import QuietObserver
from kubestow.wiring.profiles import build_profiles
from kubestow.wiring.registry import in_tree_registry


class Notes(QuietObserver):
    """Keeps what is told."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[str] = []
        self.stored = 0

    def batch_tried(self, profile: str, result: str) -> None:
        self.tried.append(result)

    def results_stored(self, profile: str, seconds: float) -> None:
        self.stored += 1


def test_pods_use_what_equal_pods_before_them_left() -> None:
    """The second pod of a kind leaves something, which those after it use, also to find out that none fits."""
    cluster, notes = Cluster(), Notes()
    for number in range(3):
        cluster.set_node(make_node(f"n{number}", cpu="4"))
    (profile,) = build_profiles(
        default(), in_tree_registry(), offline_handle(cluster), NoObserver(), lambda: 0.0
    ).values()
    choose = choose_at_random(random.Random(0))
    cycles = SchedulingCycles(cluster, Nominator(), choose, sharing_observer=notes)
    for number in range(5):
        cycles.run(profile, PodInfo(make_pod(f"p{number}", cpu="3")))
    assert notes.tried == ["no_hint", "no_hint", "hint_used", "hint_used", "hint_used"]
    assert notes.stored == 1

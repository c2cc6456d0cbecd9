"""What a record says of nodes is what a full evaluation would say, however much of the work was shared."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from hypothesis import event, given, settings
from hypothesis import strategies as st

from cycle.random_clusters import PROFILES
from cycle.stories import Schedule, World, stories, stories_of_many_sizes
from fewest_nodes import fewest_nodes
from kubestow.binding.binder import Attempt
from kubestow.cluster.pods import PodInfo
from kubestow.cycle import journal
from kubestow.cycle.journal import MOST_CHANGES
from kubestow.decisions import schema
from kubestow.decisions.recorder import Recorder
from kubestow.decisions.telling import tell
from kubestow.offline.handles import StillClock
from kubestow.queue.queued_pod import QueuedPod

Records = tuple[Recorder, list[schema.Decision]]


def record(recorder: Recorder, world: World, pod: PodInfo) -> None:
    """Have the last cycle of a world recorded."""
    recorder.decided(Attempt(QueuedPod(pod.pod, 0.0), world.profile, 0.0), world.outcome, 0.0, world.cycles.trace)


def last(recorder: Recorder) -> schema.Decision:
    """What is said of the cycle that was recorded last."""
    return tell(next(iter(recorder)), recorder)


def compare(
    profile: str,
    sample: tuple[int, int],
    story: list[Any],
    upcoming: Callable[[list[PodInfo]], list[PodInfo]],
    *,
    reads_at_once: bool,
    changes: int = MOST_CHANGES,
) -> None:
    """Let a story happen with and without sharing: records agree at once, and say the same when it is over.

    If nobody reads at once, they are only made when there are enough of them, nodes come or go, or the story is over.
    A chapter of a journal has so many changes.
    """
    fewest, percentage = sample
    pods = [PodInfo(what.pod(f"p{i}")) if isinstance(what, Schedule) else None for i, what in enumerate(story)]
    coming: list[PodInfo] = []
    recorder, plain = Recorder(StillClock(), 1 << 30), Recorder(StillClock(), 1 << 30)
    said: dict[str, schema.Decision] = {}
    # So that not all nodes of a small cluster are looked at.
    with fewest_nodes(fewest), patch.object(journal, "MOST_CHANGES", changes):
        sharing = World(profile, percentage, sharing=True, upcoming=lambda most: coming[:most], traces=True)
        alone = World(profile, percentage, sharing=False, traces=True)
        for number, what in enumerate(story):
            pod = pods[number]
            coming = upcoming([pod for pod in pods[number + 1 :] if pod is not None])
            expected = alone.happen(what, f"p{number}", pod)
            assert sharing.happen(what, f"p{number}", pod) == expected
            if expected is None or pod is None:
                continue
            record(recorder, sharing, pod)
            record(plain, alone, pod)
            said[pod.uid] = found = last(plain)
            if reads_at_once:
                assert last(recorder) == found
            event(found.outcome)
            if expected[1] is not None and found.choice is not None and found.choice.reason != "nominated":
                assert isinstance(found.nodes, dict)
                totals = {name: node.total for name, node in found.nodes.items() if node.total is not None}
                # What all nodes have in common need not be known to choose one.
                least = min(totals.values(), default=0)
                above = {name: total - least for name, total in totals.items()}
                assert above == (expected[1] if len(expected[1]) > 1 else {})
    assert {kept.uid: tell(kept, recorder) for kept in recorder} == said


@given(
    profile=st.sampled_from(sorted(PROFILES)),
    sample=st.sampled_from([(100, 0), (2, 0), (1, 30)]),
    story=stories(),
    reads_at_once=st.booleans(),
    changes=st.sampled_from([2, MOST_CHANGES]),
)
@settings(max_examples=200, deadline=None)
def test_records_of_pods_that_share(
    profile: str, sample: tuple[int, int], story: list[Any], reads_at_once: bool, changes: int
) -> None:
    """Refusals in the same words, the same scores by plugin, whose totals are those that the cycle chose from."""
    compare(profile, sample, story, lambda coming: coming, reads_at_once=reads_at_once, changes=changes)


@given(
    profile=st.sampled_from(["default", "by shape, ignoring gpus"]),
    sample=st.sampled_from([(2, 0), (1, 30), (1, 15)]),
    story=stories_of_many_sizes(),
    is_right=st.sampled_from([True, True, False]),
)
@settings(max_examples=300, deadline=None)
def test_records_of_pods_that_are_judged_ahead(
    profile: str, sample: tuple[int, int], story: list[Any], is_right: bool
) -> None:
    """The same for pods that are judged before their turn, also if others come then."""
    compare(profile, sample, story, lambda coming: coming if is_right else coming[::-2], reads_at_once=is_right)

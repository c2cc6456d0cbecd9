"""Pods that share results with equal pods are placed exactly where they would be without sharing."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import SKIP
from kubestow.scheduler.queue.nominator import Nominator
from support.fewest_nodes import fewest_nodes
from support.scheduler.random_clusters import PROFILES, clusters, kinds, pod_of, profile_on
from support.scheduler.stories import Schedule, World, stories, stories_of_many_sizes


def compare(
    profile: str, sample: tuple[int, int], story: list[Any], upcoming: Callable[[list[PodInfo]], list[PodInfo]]
) -> None:
    """Apply events with and without sharing; `upcoming` selects the announced pods from those that follow."""
    fewest, percentage = sample
    pods = [PodInfo(what.pod(f"p{i}")) if isinstance(what, Schedule) else None for i, what in enumerate(story)]
    coming: list[PodInfo] = []
    # So that not all nodes of a small cluster are searched.
    with fewest_nodes(fewest):
        sharing = World(profile, percentage, sharing=True, upcoming=lambda limit: coming[:limit])
        alone = World(profile, percentage, sharing=False)
        for number, what in enumerate(story):
            coming = upcoming([pod for pod in pods[number + 1 :] if pod is not None])
            expected = alone.happen(what, f"p{number}", pods[number])
            assert sharing.happen(what, f"p{number}", pods[number]) == expected
            if expected is not None:
                event("placed" if expected[1] else "failed")


@given(
    profile=st.sampled_from(sorted(PROFILES)),
    sample=st.sampled_from([(100, 0), (2, 0), (1, 30)]),
    story=stories(),
)
@settings(max_examples=150, deadline=None)
def test_decisions_are_the_same(profile: str, sample: tuple[int, int], story: list[Any]) -> None:
    """Node, totals, counts and failures are equal with equal random numbers: for any pods, after any events."""
    compare(profile, sample, story, lambda coming: coming)


@given(
    profile=st.sampled_from(["default", "by shape, ignoring gpus"]),
    sample=st.sampled_from([(2, 0), (1, 30), (1, 15)]),
    story=stories_of_many_sizes(),
    is_right=st.sampled_from([True, True, False]),
)
@settings(max_examples=150, deadline=None)
def test_decisions_are_the_same_with_prefetched_results(
    profile: str, sample: tuple[int, int], story: list[Any], is_right: bool
) -> None:
    """Results are computed before the cycles of the pods, and other pods may come than those announced."""
    compare(profile, sample, story, lambda coming: coming if is_right else coming[::-2])


@given(cluster=clusters(), kind=kinds, profile=st.sampled_from(sorted(PROFILES)))
@settings(max_examples=150, deadline=None)
def test_results_for_single_rows(cluster: Cluster, kind: str, profile: str) -> None:
    """`row_rejection` and `row_score` return for every row what the vector form returns."""
    made, pod, table = profile_on(cluster, Nominator(), profile), PodInfo(pod_of(kind, "p")), cluster.nodes
    everywhere = slice(0, table.size)
    asked = 0
    for hook in made.filter:
        if not hasattr(hook.plugin, "row_rejection"):
            continue
        state = hook.plugin.pre_filter(pod)
        answer = hook.function(state, pod, table, everywhere)
        kinds = [0] * table.size if answer is None else answer.kinds.tolist()
        expected = [None if answer is None or not kind else answer.words(kind) for kind in kinds]
        assert [hook.plugin.row_rejection(state, table, row) for row in range(table.size)] == expected
        asked += 1
    for hook in made.score:
        if not hasattr(hook.plugin, "row_score"):
            continue
        state = hook.plugin.pre_score(pod, table, np.arange(table.size))
        if state is SKIP:
            continue
        scores = hook.function(state, pod, table, everywhere).tolist()
        found = [hook.plugin.row_score(state, table, row) for row in range(table.size)]
        assert [score if alone is None else alone for score, alone in zip(scores, found, strict=True)] == scores
        asked += 1
    assert asked

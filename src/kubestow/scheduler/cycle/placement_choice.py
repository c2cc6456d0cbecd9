"""Chooses the best placement for a pod group by the PlacementScore plugins."""

from collections.abc import Sequence

import numpy as np

from kubestow.rng import Rng
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.placements import PlacedPods, TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError


class PlacementScoreError(Exception):
    """A PlacementScore plugin failed; the message is that of kube-scheduler."""

    code = Code.ERROR


def best_placement(profile: Profile, group: TriedGroup, candidates: Sequence[PlacedPods], rng: Rng) -> int:
    """Return the index of the best candidate, at random among equal ones. Raises PlacementScoreError."""
    if len(candidates) == 1:
        return 0
    totals = profile.caller.run_point("PlacementScore", _totals, profile, group, candidates)
    best = np.flatnonzero(totals == totals.max())
    return int(best[rng.randrange(len(best))])


def _totals(profile: Profile, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
    totals: IntArray = np.zeros(len(candidates), np.int64)
    for hook, weight in zip(profile.placement_score, profile.placement_weights, strict=True):
        totals += weight * _scores(profile, hook, group, candidates)
    return totals


def _scores(profile: Profile, hook: Hook, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
    try:
        return np.asarray(profile.caller.call(hook, group, candidates, rows=len(candidates)), np.int64)
    except PluginError as error:
        reason = f'plugin "{hook.name}" failed with: {error.__cause__ or error}'
        raise PlacementScoreError(f"running PlacementScore plugins: {reason}") from error

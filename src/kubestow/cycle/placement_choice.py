"""The best of the placements in which a pod group can be placed, as the PlacementScore plugins see it."""

from collections.abc import Sequence

import numpy as np

from kubestow.cluster.arrays import IntArray
from kubestow.framework.hook import Hook
from kubestow.framework.placements import PlacedPods, TriedGroup
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError
from kubestow.model.rng import Rng


class PlacementScoreError(Exception):
    """Placements could not be scored; says why, in the words of kube-scheduler."""

    code = Code.ERROR


def best_placement(profile: Profile, group: TriedGroup, candidates: Sequence[PlacedPods], rng: Rng) -> int:
    """The number of the best candidate; of several, any. Raises PlacementScoreError."""
    if len(candidates) == 1:
        return 0
    caller, start, status = profile.caller, profile.caller.started(), Code.ERROR
    try:
        totals: IntArray = np.zeros(len(candidates), np.int64)
        for hook, weight in zip(profile.placement_score, profile.placement_weights, strict=True):
            totals += weight * _scores(profile, hook, group, candidates)
        status = Code.SUCCESS
    finally:
        caller.finished("PlacementScore", status, start)
    best = np.flatnonzero(totals == totals.max())
    return int(best[rng.randrange(len(best))])


def _scores(profile: Profile, hook: Hook, group: TriedGroup, candidates: Sequence[PlacedPods]) -> IntArray:
    try:
        return np.asarray(profile.caller.call(hook, group, candidates, rows=len(candidates)), np.int64)
    except PluginError as error:
        why = f'plugin "{hook.name}" failed with: {error.__cause__ or error}'
        raise PlacementScoreError(f"running PlacementScore plugins: {why}") from error

"""Scores nodes by the storage utilization of a pod's claims: of matched volumes, or of storage pools."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kubestow.api.claims import claim_class
from kubestow.api.quantity import value
from kubestow.config.plugin_args import UtilizationShapePoint
from kubestow.scheduler.framework.broken_line import score_table
from kubestow.scheduler.plugins.volume_binding.claims import STORAGE
from kubestow.scheduler.plugins.volume_binding.finding import Match, Provision


class CapacityScorer:
    """Scores the matches of a node or, without matches, its provisions; the mean over storage classes."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._score_of = score_table(shape)

    def score(self, matches: Iterable[Match], provisions: Iterable[Provision]) -> int:
        wanted: dict[str, int] = defaultdict(int)
        offered: dict[str, int] = defaultdict(int)
        for match in matches:
            name = match.volume.spec.storageClassName
            wanted[name] += value(match.claim.spec.resources.requests.get(STORAGE, 0))
            offered[name] += value(match.volume.spec.capacity.get(STORAGE, 0))
        if not wanted:
            for provision in provisions:
                if provision.pool is not None:
                    name = claim_class(provision.claim)
                    wanted[name] += value(provision.claim.spec.resources.requests.get(STORAGE, 0))
                    # Claims of one class share the pool, which counts once.
                    offered[name] = value(provision.pool.capacity or 0)
        if not wanted:
            return 0
        scores = [self._for_class(wanted[name], offered[name]) for name in wanted]
        # Halves are rounded up.
        return int(sum(scores) / len(scores) + 0.5)

    def _for_class(self, wanted: int, offered: int) -> int:
        utilization = 100 if offered == 0 or wanted > offered else wanted * 100 // offered
        return int(self._score_of[utilization])

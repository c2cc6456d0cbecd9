"""Everything that pods share: finds, for each pod, what it may use of it."""

from collections.abc import Hashable

from kubestow.cluster.order import Search
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.sharing.cached import Cached, CachedRoom, CachedVerdicts
from kubestow.cycle.sharing.direct import Direct
from kubestow.cycle.sharing.groups import Groups, groups_of
from kubestow.cycle.sharing.lru import Lru
from kubestow.cycle.sharing.prefetched import Prefetcher, Upcoming
from kubestow.cycle.sharing.ready import Ready, prepare
from kubestow.cycle.sharing.shared_evaluation import PodClass, Shared, SharedEvaluation
from kubestow.cycle.sharing.signature import Signature, Signatures
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

_MOST_ROWS = 2_000_000
"""How many rows all classes together may remember, at some 20 bytes each; the same again for those of nodes alone."""
_MOST_READY = 1_024


class Sharing:
    """What is remembered of pods, and of pods to come."""

    def __init__(self, metrics: SchedulerMetrics, upcoming: Upcoming) -> None:
        self._metrics = metrics
        self._prefetcher = Prefetcher(upcoming)
        self._signatures = Signatures()
        self._classes: Lru[Hashable, Shared] = Lru()
        self._nodes: Lru[Hashable, Cached] = Lru()
        """By the part of signatures that is about nodes alone."""
        self._pods: Lru[Hashable, Ready] = Lru()
        """By the part of signatures that is about the pods on a node."""
        self._seen: Lru[int, bool] = Lru()
        self._nodes_seen: Lru[int, bool] = Lru()
        """Signatures seen once lately, by their hash, which is enough for a guess."""
        self._groups: dict[tuple[str, frozenset[str]], Groups] = {}

    def forgotten(self) -> "Sharing":
        """The same with nothing remembered."""
        return Sharing(self._metrics, self._prefetcher.upcoming)

    def evaluate(self, evaluation: Evaluation, search: Search) -> SharedEvaluation | None:
        """Start to judge nodes for a pod; None if only a full evaluation can tell what becomes of it."""
        profile = evaluation.profile
        start = profile.caller.started()
        signature = self._signatures.of(profile, evaluation.cluster, evaluation.pod)
        groups = self._groups_of(profile, signature.declined)
        known = self._classes.get(signature.whole)
        if known is not None:
            self._prefetcher.pause()
        judged = None
        try:
            shared = self._newcomer(signature, groups, evaluation, search) if known is None else known
            seconds = profile.caller.started() - start
            hinted = "no_hint" if known is None else "hint"
            self._metrics.get_node_hint_seconds.observe(seconds, hinted, profile.name)
            if shared is not None:
                judged = SharedEvaluation(evaluation, shared, groups.others)
                if not judged.begin(signature):
                    judged = None
        except PluginError:
            # A PreFilter failed; perhaps one before it refuses the pod.
            judged = None
        result = "no_hint" if known is None else "hint_used" if judged is not None else "hint_not_used"
        self._metrics.batch_attempts.inc(profile.name, result)
        if judged is not None:
            # Told only now: a full evaluation would tell of it again.
            profile.caller.finished("PreFilter", Code.SUCCESS, start)
        return judged

    def _groups_of(self, profile: Profile, declined: frozenset[str]) -> Groups:
        key = (profile.name, declined)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = groups_of(profile, declined)
        return found

    def _newcomer(self, signature: Signature, groups: Groups, evaluation: Evaluation, search: Search) -> Shared | None:
        """A class for a pod whose like has been seen before; else what judges this pod alone."""
        profile, table = evaluation.profile, evaluation.cluster.nodes
        room = _MOST_ROWS // table.capacity
        comes_again = _comes_again(self._seen, signature.whole, room)
        nodes = self._nodes_of(signature, groups, evaluation, room)
        if nodes is None:
            return None
        start = profile.caller.started()
        pods = self._pods_of(signature, groups, evaluation)
        prefetched = self._prefetcher.take(evaluation.pod, groups.sums, table)
        sums = prepare(evaluation, groups.sums) if prefetched is None else prefetched.ready
        if pods is None or sums is None:
            return None
        states = {**nodes.ready.states, **pods.states, **sums.states}
        skipped = nodes.ready.skipped | pods.skipped | sums.skipped
        if comes_again:
            cached = Cached(pods.and_also(sums), table.changes, nodes)
            made = Shared(cached, states, skipped, PodClass(cached, CachedRoom(), CachedVerdicts()))
            for _ in range(self._classes.put(signature.whole, made, room)):
                self._metrics.batch_cache_flushed.inc(profile.name, "expired")
            seconds = profile.caller.started() - start
            self._metrics.store_schedule_results_seconds.observe(seconds, profile.name)
            return made
        if prefetched is None and evaluation.nominated_row is None and not signature.declined:
            prefetched = self._prefetcher.look(evaluation, groups.sums, sums, search)
        below = Direct(pods, nodes)
        results = Direct(sums, below) if prefetched is None else prefetched.on(below)
        return Shared(results, states, skipped)

    def _pods_of(self, signature: Signature, groups: Groups, evaluation: Evaluation) -> Ready | None:
        """The plugins that look at the pods on a node, ready; None if one refuses or narrows."""
        found = self._pods.get(signature.pods)
        if found is None:
            found = prepare(evaluation, groups.pods)
            if found is not None:
                self._pods.put(signature.pods, found, _MOST_READY)
        return found

    def _nodes_of(self, signature: Signature, groups: Groups, evaluation: Evaluation, room: int) -> Cached | None:
        """What the plugins say that look at a node alone; None if one refuses or narrows, or it is not worth it yet."""
        found = self._nodes.get(signature.nodes)
        if found is None and _comes_again(self._nodes_seen, signature.nodes, room):
            ready = prepare(evaluation, groups.nodes)
            if ready is not None:
                found = Cached(ready, evaluation.cluster.nodes.node_changes)
                self._nodes.put(signature.nodes, found, room)
        return found


def _comes_again(seen: Lru[int, bool], key: Hashable, room: int) -> bool:
    """Whether a signature is among the last that were seen once; what does not come again is not worth remembering."""
    number = hash(key)
    if number in seen:
        seen.drop(number)
        return True
    seen.put(number, True, room)
    return False

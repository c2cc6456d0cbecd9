"""Finds the shared results that a pod can use."""

from collections.abc import Hashable

from kubestow.scheduler.cluster.order import Search
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.sharing.cached import CachedResults, CachedVerdicts, CachedWithNominated
from kubestow.scheduler.cycle.sharing.lru import Lru
from kubestow.scheduler.cycle.sharing.plugin_groups import PluginGroups, plugin_groups_of
from kubestow.scheduler.cycle.sharing.prefetched import Prefetcher, Upcoming
from kubestow.scheduler.cycle.sharing.prepared import PreparedPlugins, prepare
from kubestow.scheduler.cycle.sharing.results import DirectResults
from kubestow.scheduler.cycle.sharing.shared_evaluation import PodClass, SharedEvaluation, SharedResults
from kubestow.scheduler.cycle.sharing.signature import Signature, Signatures, are_equal
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_CACHED_ROWS_LIMIT = 2_000_000
"""Maximum number of rows in the caches of all pod classes, at about 20 bytes each; the same for results by node."""
_PREPARED_LIMIT = 1_024
"""Maximum number of signatures for which prepared plugins are kept."""


class Sharing:
    """The results that pods share, by signature."""

    def __init__(self, metrics: SchedulerMetrics, upcoming: Upcoming) -> None:
        self._metrics = metrics
        self._prefetcher = Prefetcher(upcoming)
        self._signatures = Signatures()
        self._classes: Lru[Hashable, SharedResults] = Lru()
        self._nodes: Lru[Hashable, CachedResults] = Lru()
        """Results by the part of the signature for plugins that read only the node."""
        self._pods: Lru[Hashable, PreparedPlugins] = Lru()
        """Plugins by the part of the signature for plugins that read the pods on a node."""
        self._seen_once: Lru[int, bool] = Lru()
        self._nodes_seen_once: Lru[int, bool] = Lru()
        """The hashes of signatures that have occurred once; a hash collision only caches a signature too early."""
        self._groups: dict[tuple[str, frozenset[str]], PluginGroups] = {}

    def empty_copy(self) -> "Sharing":
        """Return a `Sharing` without results."""
        return Sharing(self._metrics, self._prefetcher.upcoming)

    def evaluate(self, evaluation: Evaluation, search: Search) -> SharedEvaluation | None:
        """Return the evaluation of a pod by shared results, after PreFilter; None if a full evaluation is needed."""
        profile = evaluation.profile
        start = profile.caller.started()
        signature = self._signatures.of(profile, evaluation.cluster, evaluation.pod)
        groups = self._groups_of(profile, signature.declined)
        pod_results = self._classes.get(signature.whole)
        if pod_results is not None:
            self._prefetcher.reset()
        evaluated = None
        try:
            shared = self._add(signature, groups, evaluation, search) if pod_results is None else pod_results
            seconds = profile.caller.started() - start
            hint = "no_hint" if pod_results is None else "hint"
            self._metrics.get_node_hint_seconds.observe(seconds, hint, profile.name)
            if shared is not None:
                evaluated = SharedEvaluation(evaluation, shared, groups.others)
                if not evaluated.begin(signature):
                    evaluated = None
        except PluginError:
            # A PreFilter failed; in the order of a full evaluation, another one may reject the pod first.
            evaluated = None
        result = "no_hint" if pod_results is None else "hint_used" if evaluated is not None else "hint_not_used"
        self._metrics.batch_attempts.inc(profile.name, result)
        if evaluated is not None:
            # Not before: a full evaluation would observe PreFilter a second time.
            profile.caller.record_point("PreFilter", Code.SUCCESS, start)
        return evaluated

    def _groups_of(self, profile: Profile, declined: frozenset[str]) -> PluginGroups:
        key = (profile.name, declined)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = plugin_groups_of(profile, declined)
        return found

    def _add(
        self, signature: Signature, groups: PluginGroups, evaluation: Evaluation, search: Search
    ) -> SharedResults | None:
        """Return results for a pod with an uncached signature.

        They are cached if the signature has occurred before, or if the next pod is equal.
        """
        profile, table = evaluation.profile, evaluation.cluster.nodes
        limit = _CACHED_ROWS_LIMIT // table.capacity
        is_repeated = _is_repeated(self._seen_once, signature.whole, limit) or any(
            are_equal(profile, pod, evaluation.pod) for pod in self._prefetcher.upcoming(1)
        )
        nodes = self._node_results(signature, groups, evaluation, limit, is_repeated)
        if nodes is None:
            return None
        start = profile.caller.started()
        pods = self._pod_plugins(signature, groups, evaluation)
        prefetched = self._prefetcher.take(evaluation, groups.sums)
        sums = prepare(evaluation, groups.sums) if prefetched is None else prefetched.plugins
        if pods is None or sums is None:
            return None
        states = {**nodes.plugins.states, **pods.states, **sums.states}
        skipped = nodes.plugins.skipped | pods.skipped | sums.skipped
        if is_repeated:
            cached = CachedResults(pods.merged_with(sums), table.changes, nodes)
            pod_class = PodClass(cached, CachedWithNominated(), CachedVerdicts(), self._metrics.batch_rescore_seconds)
            made = SharedResults(cached, states, skipped, pod_class)
            for _ in range(self._classes.put(signature.whole, made, limit)):
                self._metrics.batch_cache_flushed.inc(profile.name, "expired")
            seconds = profile.caller.started() - start
            self._metrics.store_schedule_results_seconds.observe(seconds, profile.name)
            return made
        if prefetched is None and evaluation.nominated_row is None and not signature.declined:
            prefetched = self._prefetcher.prefetch(evaluation, groups.sums, sums, search)
        below = DirectResults(pods, nodes)
        results = DirectResults(sums, below) if prefetched is None else prefetched.on(below)
        return SharedResults(results, states, skipped)

    def _pod_plugins(
        self, signature: Signature, groups: PluginGroups, evaluation: Evaluation
    ) -> PreparedPlugins | None:
        """Prepare the plugins that read the pods on a node; None if one rejects the pod or narrows the nodes."""
        found = self._pods.get(signature.pods)
        if found is None:
            found = prepare(evaluation, groups.pods)
            if found is not None:
                self._pods.put(signature.pods, found, _PREPARED_LIMIT)
        return found

    def _node_results(
        self, signature: Signature, groups: PluginGroups, evaluation: Evaluation, limit: int, is_repeated: bool
    ) -> CachedResults | None:
        """Return the results of the plugins that read only the node.

        None if one of them rejects the pod or narrows the nodes, or the signature has not occurred before.
        """
        found = self._nodes.get(signature.nodes)
        if found is None and (_is_repeated(self._nodes_seen_once, signature.nodes, limit) or is_repeated):
            plugins = prepare(evaluation, groups.nodes)
            if plugins is not None:
                found = CachedResults(plugins, evaluation.cluster.nodes.node_changes)
                self._nodes.put(signature.nodes, found, limit)
        return found


def _is_repeated(seen_once: Lru[int, bool], key: Hashable, limit: int) -> bool:
    """Return whether a signature has occurred before; if not, remember it among the `limit` most recent ones."""
    number = hash(key)
    if number in seen_once:
        seen_once.drop(number)
        return True
    seen_once.put(number, True, limit)
    return False

"""The scheduling cycle of one pod: find the feasible nodes, choose the best one, take it.

    PreFilter -> (nominated node first) Filter -> [PostFilter] -> PreScore -> Score -> choose
              -> assume -> Reserve -> Permit

A cycle never waits: it reads the live cluster, and its result is in the cluster before the next cycle starts. A cycle
is a generator that yields the calls to extenders; its caller sends the answers.
"""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from kubestow.config.configuration import Extender
from kubestow.rng import Rng
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.order import Search, feasible_nodes_to_find, first_passing, search_for
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import NO_NODES, Failed, Outcome, Placed, SearchedNodes, failed_by, refusal
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.cycle.sharing import SharedEvaluation, Sharing, Upcoming
from kubestow.scheduler.extenders.configured import ConfiguredExtenders
from kubestow.scheduler.extenders.extender import Conversation, ExtenderError, PausedConversation, run_until_calls
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection, Wait
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


RowEvaluator = Evaluation | SharedEvaluation
"""Filters and scores rows for one pod."""

Choose = Callable[[IntArray], int]
"""Chooses one of the rows with the best score."""

LONGEST_PERMIT_WAIT = 15 * 60.0
_SEARCHES_LIMIT = 1_024


def choose_at_random(rng: Rng) -> Choose:
    """Return a function that chooses one of the best rows at random."""

    def choose(best: IntArray) -> int:
        return int(best[rng.randrange(len(best))]) if len(best) > 1 else int(best[0])

    return choose


class SchedulingCycles:
    """Runs the scheduling cycles of one cluster.

    Keeps the state between cycles: where the next search starts, and the results that equal pods share.
    """

    def __init__(
        self,
        cluster: Cluster,
        nominator: Nominator,
        choose: Choose,
        percentage_of_nodes_to_score: int = 0,
        *,
        extenders: ConfiguredExtenders | None = None,
        share_among_equal_pods: bool = True,
        metrics: SchedulerMetrics | None = None,
        upcoming: Upcoming = lambda _limit: (),
    ) -> None:
        """`upcoming(limit)` returns the pods that are scheduled next, as far as they are known."""
        self._cluster = cluster
        self._nominator = nominator
        self._choose = choose
        self._percentage = percentage_of_nodes_to_score
        self._extenders = extenders or ConfiguredExtenders()
        self._next_start = 0
        self._rows: IntArray | None = None
        self._searches: dict[tuple[int, str], Search] = {}
        """Searches over all nodes, by start and profile."""
        self._found_none = False
        """Whether the last search found no feasible node; the next one will probably find none, either."""
        self._sharing = Sharing(metrics or SchedulerMetrics(), upcoming) if share_among_equal_pods else None

    @property
    def has_extenders(self) -> bool:
        """Whether extenders are configured."""
        return self._extenders.current is not None

    @property
    def extenders(self) -> tuple[Extender, ...]:
        """The extenders of the configuration in use."""
        return self._extenders.configured

    def reconfigure(self, percentage_of_nodes_to_score: int) -> None:
        """Use another percentage from the next cycle on, and drop the shared results."""
        self._percentage = percentage_of_nodes_to_score
        self._searches.clear()
        self._sharing = self._sharing and self._sharing.empty_copy()

    def run(self, profile: Profile, pod: PodInfo) -> Outcome | PausedConversation[Outcome]:
        """Schedule one pod; return its outcome, or the first calls to extenders."""
        return run_until_calls(self.schedule(profile, pod))

    def schedule(
        self, profile: Profile, pod: PodInfo, within: IntArray | None = None, *, in_group: bool = False
    ) -> Conversation[Outcome]:
        """Schedule one pod on all nodes, or on the rows `within`; yield the calls to extenders.

        A failure of a plugin or an extender is an outcome, not an exception. Of a pod `in_group`, the group's cycle
        decides: neither PostFilter nor Permit runs.
        """
        node_count = self._cluster.nodes.count
        searched = SearchedNodes(self._cluster.revision, self._extenders.configured, node_count)
        try:
            if node_count == 0:
                return Failed(Code.UNRESOLVABLE, NO_NODES, searched=searched)
            search = self._next_search(profile, within)
            evaluation = Evaluation(profile, self._cluster, self._nominator, pod, within)
            # 1. Run PreFilter, or reuse the results of an equal pod.
            evaluator = self._pre_filter(evaluation, search)
            if evaluator is not None:
                # 2. Find the feasible nodes and choose the best one.
                row = yield from self._find(evaluation, evaluator, search, searched)
                if row is not None:
                    # 3. Assume the pod on the node, and run Reserve and Permit.
                    return self._reserve_row(evaluation, row, searched, permits=not in_group)
            # 4. No node is feasible: run PostFilter.
            if in_group:
                return _failed_in_group(evaluation, searched)
            return (yield from self._post_filter(evaluation, searched))
        except PluginError as error:
            return failed_by(error, searched)
        except ExtenderError as error:
            return Failed(Code.ERROR, str(error), searched=searched)
        except ValueError as error:
            return Failed(Code.ERROR, f"pod {pod.key} cannot be scheduled: {error}", searched=searched)

    # Finding a node

    def _next_search(self, profile: Profile, within: IntArray | None) -> Search:
        """Return a search over all nodes from where the last one stopped, or over the rows `within`."""
        if within is not None:
            return self._search_in(profile, within)
        rows = self._cluster.order.rows()
        if rows is not self._rows or len(self._searches) > _SEARCHES_LIMIT:
            self._rows, self._searches = rows, {}
        start = self._next_start = self._next_start % len(rows)
        search = self._searches.get((start, profile.name))
        if search is None:
            search = self._search_in(profile, self._cluster.order.rows_from(start))
            self._searches[start, profile.name] = search
        return search

    def _search_in(self, profile: Profile, order: IntArray) -> Search:
        percentage = profile.percentage_of_nodes_to_score
        enough = feasible_nodes_to_find(len(order), self._percentage if percentage is None else percentage)
        # Without scores, the first feasible node is taken.
        extenders = self._extenders.current
        has_scores = bool(profile.score) or (extenders is not None and extenders.evaluates_nodes)
        return search_for(enough if has_scores else 1, order)

    def _pre_filter(self, evaluation: Evaluation, search: Search) -> RowEvaluator | None:
        """Return what filters and scores rows for the pod; None if a PreFilter plugin rejects the pod."""
        if self._sharing is not None and not evaluation.pod.pod.spec.nodeName:
            shared = self._sharing.evaluate(evaluation, search)
            if shared is not None:
                return shared
        return evaluation if evaluation.pre_filter() else None

    def _find(
        self, evaluation: Evaluation, evaluator: RowEvaluator, search: Search, searched: SearchedNodes
    ) -> Conversation[int | None]:
        """Return the row of the best node, None if no node is feasible; fill in `searched`."""
        # 1. The pod's nominated node, if it is feasible.
        nominated = self._nominated_row(evaluation.pod, evaluation.within)
        if nominated is not None and (yield from self._is_feasible(evaluation, evaluator, nominated)):
            searched.set_nominated(nominated)
            return nominated
        # 2. Nodes that pass the filters, up to the limit of the search.
        narrowed = evaluation.narrowed_rows()
        if narrowed is not None:
            search = self._search_in(evaluation.profile, narrowed)
        run_point = evaluation.profile.caller.run_point
        rows, count = run_point("Filter", self._filter, evaluation, evaluator, search)
        if evaluation.within is None and narrowed is None:
            # The order itself is an array of all rows.
            searched.start = self._next_start
        else:
            searched.order = search.order
        self._next_start += count
        searched.evaluated, searched.feasible = count, len(rows)
        # 3. The nodes that the extenders keep.
        extenders = self._extenders.current
        if extenders is not None and len(rows):
            left = yield from extenders.filter(evaluation.pod, rows)
            rows, searched.feasible = left.rows, len(left.rows)
            if not len(rows):
                evaluation.explain_extended(search.order[:count], left.failed(self._cluster.nodes))
        # 4. The node with the best total score.
        if not len(rows):
            return None
        if len(rows) == 1:
            return rows.item(0)
        totals = evaluator.score(rows)
        if extenders is not None:
            totals = totals + (yield from extenders.prioritize(evaluation.pod, rows))
        return self._choose(rows[totals == totals.item(totals.argmax())])

    def _is_feasible(self, evaluation: Evaluation, evaluator: RowEvaluator, row: int) -> Conversation[bool]:
        """Return whether the nominated node is feasible, also for the extenders."""
        passes = evaluation.profile.caller.run_point("Filter", evaluator.passes, row)
        extenders = self._extenders.current
        if extenders is None or not passes:
            return passes
        try:
            return len((yield from extenders.filter(evaluation.pod, np.array([row]))).rows) > 0
        except ExtenderError as error:
            log.error("Evaluation failed on nominated node", err=error, pod=evaluation.pod.key)
            return False

    def _filter(self, evaluation: Evaluation, evaluator: RowEvaluator, search: Search) -> tuple[IntArray, int]:
        """Return the first `search.enough` feasible rows, and the number of rows that were filtered."""
        at_once = self._found_none and evaluator.is_cached
        rows, count = first_passing(evaluator.passing, search, at_once)
        self._found_none = not len(rows)
        if self._found_none:
            # Cached verdicts are about all rows, so they do not explain a search within some rows.
            (evaluator if evaluation.within is None else evaluation).explain()
        return rows, count

    def _nominated_row(self, pod: PodInfo, within: IntArray | None) -> int | None:
        name = pod.pod.status.nominatedNodeName
        row = self._cluster.nodes.row_of.get(name) if name else None
        if row is None or not self._cluster.nodes.live[row] or (within is not None and row not in within):
            return None
        return row

    def _post_filter(self, evaluation: Evaluation, searched: SearchedNodes) -> Conversation[Failed]:
        plugins = frozenset(evaluation.rejecting_plugins)
        if not evaluation.profile.post_filter:
            return Failed(Code.UNSCHEDULABLE, evaluation.message(), plugins, searched=searched)
        result = yield from run_post_filter(evaluation.profile, evaluation, self._extenders.current)
        return Failed(
            Code.UNSCHEDULABLE,
            evaluation.message(result.message),
            plugins,
            nominated_node=result.nominated_node,
            victims=result.victims,
            to_unnominate=result.to_unnominate,
            preempting_plugin=result.plugin,
            searched=searched,
        )

    # Assume, Reserve, Permit

    def _reserve_row(self, evaluation: Evaluation, row: int, searched: SearchedNodes, *, permits: bool) -> Outcome:
        profile, node = evaluation.profile, self._cluster.nodes.names[row]
        # Keep only the states that are needed later: others may be large, and thousands of pods may be binding.
        states = {name: state for name, state in evaluation.states.items() if name in profile.acting}
        if evaluation.pod.pod.spec.nodeName:
            return self._permit_in_place(profile, Placed(evaluation.pod, node, states, searched))
        return self.reserve(profile, Placed(evaluation.pod.placed_on(node), node, states, searched), permits=permits)

    def _permit_in_place(self, profile: Profile, placed: Placed) -> Failed:
        """Run Permit for a pod that is on the node already; a plugin must reject it, since there is nothing to bind."""
        refused = self.permit(profile, placed)
        if not isinstance(refused, Placed):
            return refusal(refused, placed.searched)
        pod = placed.pod
        message = f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed"
        return Failed(Code.ERROR, message, searched=placed.searched)

    def reserve(self, profile: Profile, placed: Placed, *, permits: bool) -> Outcome:
        """Assume a pod on its node, and run Reserve and, if `permits`, Permit; undo all if a plugin rejects it."""
        self._cluster.assume(placed.pod, placed.node)
        refused = self._run_reserve(profile, placed.states, placed.pod, placed.node)
        if refused is None:
            outcome = self.permit(profile, placed) if permits else placed
            if isinstance(outcome, Placed):
                return outcome
            refused = outcome
        self.unreserve(profile, placed)
        return refusal(refused, placed.searched)

    def _run_reserve(
        self, profile: Profile, states: dict[str, object], pod: PodInfo, node: str
    ) -> Rejection | PluginError | None:
        caller, start, status = profile.caller, profile.caller.started(), Code.SUCCESS
        try:
            for hook in profile.reserve:
                if hook.needs_state and hook.name not in states:
                    continue
                answer = caller.call(hook, states.get(hook.name), pod, node)
                if answer is not None:
                    status = answer.code
                    return answer._replace(plugin=hook.name)  # type: ignore[no-any-return]
        except PluginError as error:
            status = Code.ERROR
            return error
        finally:
            caller.record_point("Reserve", status, start)
        return None

    def permit(self, profile: Profile, placed: Placed) -> Placed | Rejection | PluginError:
        """Run Permit for an assumed pod; return the pod with the plugins that it has to wait for, or the rejection."""
        if not profile.permit:
            return placed
        caller, start, status = profile.caller, profile.caller.started(), Code.SUCCESS
        waits: dict[str, float] = {}
        wait_reason = ""
        try:
            for hook in profile.permit:
                answer = caller.call(hook, placed.states.get(hook.name), placed.pod, placed.node)
                if isinstance(answer, Rejection):
                    status = answer.code
                    return answer._replace(plugin=hook.name)
                if isinstance(answer, Wait):
                    status = Code.WAIT
                    waits[hook.name] = min(answer.seconds, LONGEST_PERMIT_WAIT)
                    wait_reason = answer.reason
        except PluginError as error:
            status = Code.ERROR
            return error
        finally:
            caller.record_point("Permit", status, start)
        return replace(placed, waits=waits, wait_reason=wait_reason) if waits or placed.waits else placed

    def unreserve(self, profile: Profile, placed: Placed) -> bool:
        """Run Unreserve in reverse order and forget the pod; return False if the pod was no longer assumed."""
        caller, start, status = profile.caller, profile.caller.started(), Code.SUCCESS
        for hook in reversed(profile.reserve):
            assert hook.unreserve is not None
            if not hook.applies_to(placed.states):
                continue
            try:
                caller.call(hook.unreserve, placed.states.get(hook.name), placed.pod, placed.node)
            except PluginError as error:
                # The other plugins must undo Reserve in any case.
                status = Code.ERROR
                caller.log_failure(error)
        caller.record_point("Unreserve", status, start)
        return self._cluster.forget(placed.pod.uid)


def _failed_in_group(evaluation: Evaluation, searched: SearchedNodes) -> Failed:
    return Failed(
        Code.UNSCHEDULABLE,
        evaluation.message(),
        frozenset(evaluation.rejecting_plugins),
        nominated_node=None,
        searched=searched,
        states=evaluation.states,
    )

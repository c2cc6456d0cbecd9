"""The scheduling cycle of one pod: find the feasible nodes, choose the best one, take it.

    PreFilter -> (nominated node first) Filter -> [PostFilter] -> PreScore -> Score -> choose
              -> assume -> Reserve -> Permit

A cycle never waits: it reads the live cluster, and what it decides is in the cluster when the next cycle starts. Where
extenders have to be asked, the cycle yields their calls, and the caller waits for the answers.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.order import Search, enough_nodes, first_passing, search_for
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.config.configuration import Extender
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.outcome import NO_NODES, Failed, Outcome, Placed, Searched, refusal
from kubestow.cycle.post_filter import run_post_filter
from kubestow.cycle.sharing import Sharing, Upcoming
from kubestow.extenders.configured import ConfiguredExtenders
from kubestow.extenders.extender import Asking, Conversation, ExtenderError, carry_on
from kubestow.framework.handle import Nominator
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection, Wait
from kubestow.model.rng import Rng
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Judge(Protocol):
    """Filters and scores rows for one pod."""

    @property
    def remembers(self) -> bool:
        """Whether it costs little to ask about all rows."""
        ...

    def passing(self, rows: IntArray) -> BoolArray:
        """Return which of the rows are feasible."""
        ...

    def passes(self, row: int) -> bool:
        """Return whether one row is feasible, when it may be the only one to look at."""
        ...

    def explain(self) -> None:
        """After no row has passed: let the evaluation find out why."""
        ...

    def score(self, rows: IntArray) -> IntArray:
        """Return the totals of feasible rows, comparable with each other."""
        ...


Choose = Callable[[IntArray], int]
"""Picks one of the best rows."""

LONGEST_PERMIT_WAIT = 15 * 60.0
_SEARCHES_LIMIT = 1_024


def no_upcoming(_limit: int) -> Sequence[PodInfo]:
    """An `Upcoming` for callers that do not know which pods come next."""
    return ()


def choose_at_random(rng: Rng) -> Choose:
    """Return a function that picks any of the best rows."""

    def choose(best: IntArray) -> int:
        return int(best[rng.randrange(len(best))]) if len(best) > 1 else int(best[0])

    return choose


class SchedulingCycles:
    """Runs one cycle after the other on a cluster.

    Keeps what outlives a cycle: where the next search starts, and the results that equal pods share.
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
        upcoming: Upcoming = no_upcoming,
    ) -> None:
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
        """Whether the last search found no node; the next one is then likely to find none, either."""
        self._sharing = Sharing(metrics or SchedulerMetrics(), upcoming) if share_among_equal_pods else None

    @property
    def asks_extenders(self) -> bool:
        return self._extenders.current is not None

    @property
    def extenders(self) -> tuple[Extender, ...]:
        """The extenders of the configuration in use."""
        return self._extenders.configured

    def reconfigure(self, percentage_of_nodes_to_score: int) -> None:
        """Use another configuration from the next cycle on; shared results are dropped."""
        self._percentage = percentage_of_nodes_to_score
        self._searches.clear()
        self._sharing = self._sharing and self._sharing.forgotten()

    def run(self, profile: Profile, pod: PodInfo) -> Outcome | Asking[Outcome]:
        """Schedule one pod. A failure of a plugin or an extender is an outcome, not an exception."""
        return carry_on(self.attempt(profile, pod))

    def attempt(
        self, profile: Profile, pod: PodInfo, within: IntArray | None = None, *, just_whether: bool = False
    ) -> Conversation[Outcome]:
        """Schedule one pod as a conversation with extenders, `within` some rows or on all nodes.

        With `just_whether` a failure does not say why, and PostFilter does not run.
        """
        node_count = self._cluster.nodes.count
        searched = Searched(self._cluster.revision, self._extenders.configured, node_count)
        try:
            if node_count == 0:
                return Failed(Code.UNRESOLVABLE, NO_NODES, searched=searched)
            search = self._next_search(profile, within)
            evaluation = Evaluation(profile, self._cluster, self._nominator, pod, within)
            judge = self._pre_filter(evaluation, search)
            if judge is not None:
                row = yield from self._find(evaluation, judge, search, searched, explain=not just_whether)
                if row is not None:
                    return self._take(evaluation, self._cluster.nodes.names[row], searched)
            if just_whether:
                return Failed(Code.UNSCHEDULABLE, "", searched=searched)
            return (yield from self._post_filter(evaluation, searched))
        except PluginError as error:
            return Failed(Code.ERROR, str(error), failing_plugin=error.plugin, searched=searched)
        except ExtenderError as error:
            return Failed(Code.ERROR, str(error), searched=searched)
        except ValueError as error:
            return Failed(Code.ERROR, f"pod {pod.key} cannot be scheduled: {error}", searched=searched)

    # Find a node

    def _next_search(self, profile: Profile, within: IntArray | None) -> Search:
        """Return the search over all nodes from where the last one stopped, or over the given rows."""
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
        enough = enough_nodes(len(order), self._percentage if percentage is None else percentage)
        # Where nothing is scored, the first feasible node is as good as any.
        extenders = self._extenders.current
        is_choosy = bool(profile.score) or (extenders is not None and extenders.judge_nodes)
        return search_for(enough if is_choosy else 1, order)

    def _pre_filter(self, evaluation: Evaluation, search: Search) -> Judge | None:
        """Run PreFilter, or reuse its results for equal pods; None if a plugin rejects the pod."""
        if self._sharing is not None:
            judge = self._sharing.evaluate(evaluation, search)
            if judge is not None:
                return judge
        return evaluation if evaluation.pre_filter() else None

    def _find(
        self, evaluation: Evaluation, judge: Judge, search: Search, searched: Searched, *, explain: bool
    ) -> Conversation[int | None]:
        """Return the row of the best node, None if no node is feasible; fills in `searched`."""
        extenders = self._extenders.current
        nominated = self._nominated_row(evaluation.pod, evaluation.within)
        if nominated is not None and (yield from self._is_still_good(evaluation, judge, nominated)):
            searched.took_nominated(nominated)
            return nominated
        narrowed = evaluation.narrowed_rows()
        if narrowed is not None:
            search = self._search_in(evaluation.profile, narrowed)
        rows, count = self._filter(evaluation, judge, search, explain=explain)
        if evaluation.within is None and narrowed is None:
            # The order itself, an array of all rows, is not kept with each decision.
            searched.start = self._next_start
        else:
            searched.order = search.order
        self._next_start += count
        searched.evaluated, searched.feasible = count, len(rows)
        if extenders is not None and len(rows):
            left = yield from extenders.filter(evaluation.pod, rows)
            rows, searched.feasible = left.rows, len(left.rows)
            if not len(rows):
                evaluation.explain_extended(search.order[:count], left.failed(self._cluster.nodes))
        if not len(rows):
            return None
        if len(rows) == 1:
            return rows.item(0)
        totals = judge.score(rows)
        if extenders is not None:
            totals = totals + (yield from extenders.prioritize(evaluation.pod, rows))
        return self._choose(rows[totals == totals.item(totals.argmax())])

    def _is_still_good(self, evaluation: Evaluation, judge: Judge, nominated: int) -> Conversation[bool]:
        """Return whether the nominated node is feasible."""
        caller, status = evaluation.profile.caller, Code.ERROR
        start = caller.started()
        try:
            passes = judge.passes(nominated)
            status = Code.SUCCESS
        finally:
            caller.finished("Filter", status, start)
        extenders = self._extenders.current
        if extenders is None or not passes:
            return passes
        try:
            return len((yield from extenders.filter(evaluation.pod, np.array([nominated]))).rows) > 0
        except ExtenderError as error:
            log.error("Evaluation failed on nominated node", err=error, pod=evaluation.pod.key)
            return False

    def _filter(self, evaluation: Evaluation, judge: Judge, search: Search, *, explain: bool) -> tuple[IntArray, int]:
        """Return as many feasible rows as are enough, and how many rows were looked at."""
        caller, status = evaluation.profile.caller, Code.ERROR
        start = caller.started()
        try:
            at_once = self._found_none and judge.remembers
            rows, count = first_passing(judge.passing, search, at_once)
            self._found_none = not len(rows)
            if explain and self._found_none:
                # What equal pods share covers all rows.
                (judge if evaluation.within is None else evaluation).explain()
            status = Code.SUCCESS
        finally:
            caller.finished("Filter", status, start)
        return rows, count

    def _nominated_row(self, pod: PodInfo, within: IntArray | None) -> int | None:
        name = pod.pod.status.nominatedNodeName
        row = self._cluster.nodes.row_of.get(name) if name else None
        if row is None or not self._cluster.nodes.live[row] or (within is not None and row not in within):
            return None
        return row

    def _post_filter(self, evaluation: Evaluation, searched: Searched) -> Conversation[Failed]:
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

    # Take it

    def _take(self, evaluation: Evaluation, node: str, searched: Searched) -> Outcome:
        profile = evaluation.profile
        # The states of other plugins may be large, and thousands of pods may be about to be bound.
        states = {name: state for name, state in evaluation.states.items() if name in profile.acting}
        return self.take(profile, Placed(evaluation.pod.placed_on(node), node, states, searched))

    def take(self, profile: Profile, placed: Placed) -> Outcome:
        """Assume a pod on its node, and run Reserve and Permit; if a plugin refuses, everything is undone."""
        self._cluster.assume(placed.pod, placed.node)
        refused = self._reserve(profile, placed.states, placed.pod, placed.node)
        if refused is None:
            outcome = self.permit(profile, placed)
            if isinstance(outcome, Placed):
                return outcome
            refused = outcome
        self.give_back(profile, placed)
        return refusal(refused, placed.searched)

    def _reserve(
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
            caller.finished("Reserve", status, start)
        return None

    def permit(self, profile: Profile, placed: Placed) -> Placed | Rejection | PluginError:
        """Run Permit for an assumed pod; returns it with the plugins it has to wait for, or a refusal."""
        if not profile.permit:
            return placed
        caller, start, status = profile.caller, profile.caller.started(), Code.SUCCESS
        waits: dict[str, float] = {}
        waits_for = ""
        try:
            for hook in profile.permit:
                answer = caller.call(hook, placed.states.get(hook.name), placed.pod, placed.node)
                if isinstance(answer, Rejection):
                    status = answer.code
                    return answer._replace(plugin=hook.name)
                if isinstance(answer, Wait):
                    status = Code.WAIT
                    waits[hook.name] = min(answer.seconds, LONGEST_PERMIT_WAIT)
                    waits_for = answer.reason
        except PluginError as error:
            status = Code.ERROR
            return error
        finally:
            caller.finished("Permit", status, start)
        return replace(placed, waits=waits, waits_for=waits_for) if waits or placed.waits else placed

    def give_back(self, profile: Profile, placed: Placed) -> bool:
        """Undo Reserve, last plugin first, and forget the pod; False if the pod was no longer assumed."""
        caller, start, status = profile.caller, profile.caller.started(), Code.SUCCESS
        for hook in reversed(profile.reserve):
            assert hook.unreserve is not None
            if not hook.concerns(placed.states):
                continue
            try:
                caller.call(hook.unreserve, placed.states.get(hook.name), placed.pod, placed.node)
            except PluginError as error:
                # Unreserve must not fail; if it does, the other plugins still have to clean up.
                status = Code.ERROR
                caller.failed(error)
        caller.finished("Unreserve", status, start)
        return self._cluster.forget(placed.pod.uid)

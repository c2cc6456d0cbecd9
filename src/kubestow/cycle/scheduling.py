"""The scheduling cycle of one pod: find the nodes that will do, choose the best, take it.

    PreFilter -> (nominated node first) Filter -> [PostFilter] -> PreScore -> Score -> choose
              -> assume -> Reserve -> Permit

A cycle never waits: it sees the live cluster, and what it decides is in the cluster when the next cycle starts. Where
extenders are to be asked, it is whoever runs it that waits.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from msgspec.structs import replace

from kubestow.cluster.arrays import BoolArray, IntArray
from kubestow.cluster.order import Search, enough_nodes, first_passing, search_for
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.journal import JOURNAL_ROW_BYTES, Layers
from kubestow.cycle.outcome import NO_NODES, Failed, Outcome, Placed
from kubestow.cycle.post_filter import run_post_filter
from kubestow.cycle.sharing import Sharing, Upcoming
from kubestow.cycle.trace import Alike, Searched, Trace
from kubestow.extenders.extender import Asking, Conversation, ExtenderError, carry_on
from kubestow.framework.handle import Nominator
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection, Wait
from kubestow.framework.verdicts import Told, Verdicts
from kubestow.model.rng import Rng
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

if TYPE_CHECKING:
    from kubestow.extenders.asking import Asked, Extenders

log = get_logger(__name__)


class Judge(Protocol):
    """Says of rows whether they will do, and how good those are that will."""

    @property
    def remembers(self) -> bool:
        """Whether it costs little to ask about all rows."""
        ...

    def passing(self, rows: IntArray) -> BoolArray: ...

    def passes(self, row: int) -> bool:
        """The same for one that may be all there is to look at."""
        ...

    def explain(self) -> None:
        """After no row has passed: have the evaluation know why."""

    def score(self, rows: IntArray) -> IntArray:
        """How good rows are, compared with each other."""
        ...

    def note_refused(self, rows: IntArray) -> bool:
        """Have journals know why some of the rows are refused while others passed; False if that is not theirs."""
        ...

    def explained(self, refused: BoolArray) -> Verdicts | Told | None:
        """Why rows are refused while others passed, as far as no journal knows it. By row, whether it is refused."""
        ...


Choose = Callable[[IntArray], int]
"""Picks one of the best rows."""

LONGEST_PERMIT_WAIT = 15 * 60.0
_MOST_SEARCHES = 1_024
_NO_TRACE: Trace | Alike | None = None


def nobody(_most: int) -> Sequence[PodInfo]:
    """It is not known which pods are next."""
    return ()


def choose_at_random(rng: Rng) -> Choose:
    """Any of the best is as good as the others."""

    def choose(best: IntArray) -> int:
        return int(best[rng.randrange(len(best))]) if len(best) > 1 else int(best[0])

    return choose


class SchedulingCycles:
    """Runs one cycle after the other on a cluster; remembers where the next search starts, and what pods can share."""

    def __init__(
        self,
        cluster: Cluster,
        nominator: Nominator,
        choose: Choose,
        percentage_of_nodes_to_score: int = 0,
        *,
        share_among_equal_pods: bool = True,
        metrics: SchedulerMetrics | None = None,
        upcoming: Upcoming = nobody,
        traces: bool = False,
    ) -> None:
        """`traces`: whether cycles leave what they have found out, for others to explain it."""
        self._cluster = cluster
        self._nominator = nominator
        self._choose = choose
        self._percentage = percentage_of_nodes_to_score
        self._next_start = 0
        self._rows: IntArray | None = None
        self._searches: dict[tuple[int, str], Search] = {}
        """Of all nodes, by where they start and for which profile: most often, they start where others did."""
        self._found_none = False
        """Whether the last search did not find any: nor will the next, most often."""
        self._sharing = Sharing(metrics or SchedulerMetrics(), upcoming) if share_among_equal_pods else None
        self._extenders: Extenders | None = None
        self._asked: list[Asked] = []
        """What extenders have answered in this cycle, if it is traced."""
        self._last_layers: tuple[Layers, tuple[int, int, int], Layers] | None = None
        """Those of a pod, what else it has in common with others, and the layers of all these."""
        self.traces = traces
        self.trace: Trace | Alike | None = None
        """What the last cycle left."""

    def use_extenders(self, extenders: "Extenders | None") -> None:
        """These are asked from now on."""
        self._extenders = extenders
        self._asked.clear()
        self._searches.clear()
        if extenders is not None and self.traces:
            extenders.asked = self._asked.append

    @property
    def asks_extenders(self) -> bool:
        return self._extenders is not None

    def journal_bytes(self) -> int:
        """What journals take that pods share, whether or not anybody remembers a cycle."""
        if self._sharing is None or not self.traces:
            return 0
        return JOURNAL_ROW_BYTES * self._cluster.nodes.capacity * self._sharing.tables

    def reconfigure(self, percentage_of_nodes_to_score: int) -> None:
        """Other plugins decide from now on: what pods share is forgotten."""
        self._percentage = percentage_of_nodes_to_score
        self._searches.clear()
        self._sharing = self._sharing and self._sharing.forgotten()

    def run(self, profile: Profile, pod: PodInfo) -> Outcome | Asking[Outcome]:
        """Schedule one pod. A failure of a plugin or an extender is an outcome, not an exception."""
        return carry_on(self.attempt(profile, pod))

    def attempt(
        self, profile: Profile, pod: PodInfo, within: IntArray | None = None, *, just_whether: bool = False
    ) -> Conversation[Outcome]:
        """The same as a conversation, on some rows only if need be.

        Where it is asked `just_whether` the pod fits, a failure does not say why, and PostFilter does not run.
        """
        self.trace = _NO_TRACE
        evaluation: Evaluation | None = None
        try:
            if self._cluster.nodes.count == 0:
                return Failed(Code.UNRESOLVABLE, NO_NODES)
            search = self._next_search(profile, within)
            evaluation = Evaluation(profile, self._cluster, self._nominator, pod, within)
            if self.traces:
                evaluation.is_traced = True
            judge = self._pre_filter(evaluation, search)
            explain = not just_whether
            found = None if judge is None else (yield from self._find(evaluation, judge, search, explain))
            if found is not None:
                if self._asked:
                    self._note_calls(evaluation)
                return self._take(evaluation, *found)
            outcome = Failed(Code.UNSCHEDULABLE, "")
            if not just_whether:
                outcome = yield from self._post_filter(evaluation)
        except PluginError as error:
            outcome = Failed(Code.ERROR, str(error), failing_plugin=error.plugin)
        except ExtenderError as error:
            outcome = Failed(Code.ERROR, str(error))
        except ValueError as error:
            outcome = Failed(Code.ERROR, f"pod {pod.key} cannot be scheduled: {error}")
        if self.traces and evaluation is not None:
            self._note_calls(evaluation)
        return outcome

    # Which node

    def _next_search(self, profile: Profile, within: IntArray | None) -> Search:
        """All nodes, from where the last search stopped; or those of some rows."""
        if within is not None:
            return self._search_in(profile, within)
        rows = self._cluster.order.rows()
        if rows is not self._rows or len(self._searches) > _MOST_SEARCHES:
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
        # Where nothing is scored, the first node that will do is as good as any.
        is_choosy = bool(profile.score) or (self._extenders is not None and self._extenders.judge_nodes)
        return search_for(enough if is_choosy else 1, order)

    def _pre_filter(self, evaluation: Evaluation, search: Search) -> Judge | None:
        """Run PreFilter, or what is remembered of equal pods instead of it; no judge if it refuses the pod."""
        if self._sharing is not None:
            judge = self._sharing.evaluate(evaluation, search)
            if judge is not None:
                return judge
        return evaluation if evaluation.pre_filter() else None

    def _traced(self, evaluation: Evaluation, order: IntArray, searched: int, rows: IntArray) -> Trace:
        layers = evaluation.layers
        change = 0 if layers is None else len(layers.changes)
        self.trace = trace = Trace(evaluation, order, searched, rows, layers, change)
        return trace

    def _trace_of(self, evaluation: Evaluation) -> Trace:
        """What the cycle leaves, also if it did not come to a search."""
        trace = self.trace
        if not isinstance(trace, Trace):
            self.trace = trace = Trace(evaluation) if trace is None else trace.traced(evaluation)
        return trace

    def _note_calls(self, evaluation: Evaluation) -> None:
        """What extenders have answered."""
        self._trace_of(evaluation).calls = tuple(self._asked)
        self._asked.clear()

    def _find(
        self, evaluation: Evaluation, judge: Judge, search: Search, explain: bool
    ) -> Conversation[tuple[str, int, int] | None]:
        """The best node, how many were looked at, and how many would do; None if none will."""
        nominated = self._nominated_row(evaluation.pod, evaluation.within)
        if nominated is not None and (yield from self._is_still_good(evaluation, judge, nominated)):
            if self.traces:
                alone = np.array([nominated])
                self.trace = Trace(evaluation, alone, 1, alone, took_nominated=True)
            return self._cluster.nodes.names[nominated], 1, 1
        narrowed = evaluation.narrowed_rows()
        if narrowed is not None:
            search = self._search_in(evaluation.profile, narrowed)
        rows, searched = self._filter(evaluation, judge, search, explain)
        self._next_start += searched
        feasible, trace = len(rows), None
        if self.traces and feasible < searched and not (feasible and judge.note_refused(search.order[:searched])):
            trace = self._traced(evaluation, search.order, searched, rows)
            if feasible:
                self._tell_refused(trace, judge, search.order[:searched], rows)
        if self._extenders is not None and feasible:
            left = yield from self._extenders.filter(evaluation.pod, rows)
            if self.traces:
                trace = trace or self._traced(evaluation, search.order, searched, rows)
                trace.left, trace.failed = left.rows, left.failed(self._cluster.nodes)
            rows, feasible = left.rows, len(left.rows)
            if not feasible:
                evaluation.explain_extended(search.order[:searched], left.failed(self._cluster.nodes))
        if not feasible:
            return None
        row = rows.item(0)
        if feasible > 1:
            totals = judge.score(rows)
            if self.traces:
                layers = evaluation.layers
                if trace is None and layers is not None and not evaluation.asked_more:
                    seen = rows if feasible == searched else Searched(search.order, searched, feasible)
                    self.trace = Alike(layers, len(layers.changes), seen)
                elif trace is None and (alike := self._alike(evaluation, search.order, searched, feasible)) is not None:
                    self.trace = alike
                else:
                    trace = trace or self._traced(evaluation, search.order, searched, rows)
                    trace.is_scored, trace.scores = True, evaluation.told
            if self._extenders is not None:
                totals = totals + (yield from self._prioritized(evaluation, rows))
            row = self._choose(rows[totals == totals.item(totals.argmax())])
        elif self.traces and trace is None:
            self._traced(evaluation, search.order, searched, rows)
        return self._cluster.nodes.names[row], searched, feasible

    def _alike(self, evaluation: Evaluation, order: IntArray, searched: int, feasible: int) -> Alike | None:
        """What a pod leaves about which more was asked, if layers say all but scores."""
        layers = self._common_layers(evaluation)
        if layers is None:
            return None
        return Alike(layers, len(layers.changes), Searched(order, searched, feasible, evaluation.told_for_keeps()))

    def _common_layers(self, evaluation: Evaluation) -> Layers | None:
        """The journals that say, of a pod about which more was asked, all but its scores; None if they do not."""
        layers, skipped = evaluation.layers, evaluation.skipped
        if layers is None or evaluation.nominated is not None:
            return None
        # What is about nodes alone stays the same when some come or go, and for pods of any priority.
        nodes = layers.nodes
        common = (evaluation.pod.priority, nodes.layout, nodes.count)
        known, of, found = self._last_layers or (None, common, layers)
        if known is not layers or of != common or found.skipped != skipped:
            found = replace(layers, layout=nodes.layout, skipped=frozenset(skipped), has_more=True)
            self._last_layers = layers, common, found
        return found

    def _tell_refused(self, trace: Trace, judge: Judge, searched: IntArray, rows: IntArray) -> None:
        refused: BoolArray = np.zeros(self._cluster.nodes.size, np.bool_)
        refused[searched] = True
        refused[rows] = False
        try:
            trace.refused = judge.explained(refused)
        except PluginError as error:
            # The search has not failed: it got on without the words.
            trace.evaluation.profile.caller.failed(error)
        if trace.layers is not None:
            trace.change = len(trace.layers.changes)

    def _is_still_good(self, evaluation: Evaluation, judge: Judge, nominated: int) -> Conversation[bool]:
        """Whether the nominated node will do."""
        caller, status = evaluation.profile.caller, Code.ERROR
        start = caller.started()
        try:
            passes = judge.passes(nominated)
            status = Code.SUCCESS
        finally:
            caller.finished("Filter", status, start)
        if self._extenders is None or not passes:
            return passes
        try:
            return len((yield from self._extenders.filter(evaluation.pod, np.array([nominated]))).rows) > 0
        except ExtenderError as error:
            log.error("Evaluation failed on nominated node", err=error, pod=evaluation.pod.key)
            return False

    def _filter(self, evaluation: Evaluation, judge: Judge, search: Search, explain: bool) -> tuple[IntArray, int]:
        """As many rows that pass as are enough, and how many were looked at."""
        caller, status = evaluation.profile.caller, Code.ERROR
        start = caller.started()
        try:
            at_once = self._found_none and judge.remembers
            rows, searched = first_passing(judge.passing, search, at_once)
            self._found_none = not len(rows)
            if explain and self._found_none:
                # What is remembered of equal pods is about all rows.
                (judge if evaluation.within is None else evaluation).explain()
            status = Code.SUCCESS
        finally:
            caller.finished("Filter", status, start)
        return rows, searched

    def _prioritized(self, evaluation: Evaluation, rows: IntArray) -> Conversation[IntArray]:
        """What extenders add to the scores."""
        assert self._extenders is not None
        extended = yield from self._extenders.prioritize(evaluation.pod, rows)
        if self.traces:
            self._trace_of(evaluation).extended = extended
        return extended

    def _nominated_row(self, pod: PodInfo, within: IntArray | None) -> int | None:
        name = pod.pod.status.nominatedNodeName
        row = self._cluster.nodes.row_of.get(name) if name else None
        if row is None or not self._cluster.nodes.live[row] or (within is not None and row not in within):
            return None
        return row

    def _post_filter(self, evaluation: Evaluation) -> Conversation[Failed]:
        plugins = frozenset(evaluation.rejecting_plugins)
        if not evaluation.profile.post_filter:
            return Failed(Code.UNSCHEDULABLE, evaluation.message(), plugins)
        result = yield from run_post_filter(evaluation.profile, evaluation, self._extenders)
        if self.traces:
            self._trace_of(evaluation).post_filter = result
        return Failed(
            Code.UNSCHEDULABLE,
            evaluation.message(result.message),
            plugins,
            nominated_node=result.nominated_node,
            victims=result.victims,
            to_unnominate=result.to_unnominate,
            preempting_plugin=result.plugin,
        )

    # Taking it

    def _take(self, evaluation: Evaluation, node: str, evaluated: int, feasible: int) -> Outcome:
        profile = evaluation.profile
        # The others' states may be large, and thousands of pods may be about to be bound.
        states = {name: state for name, state in evaluation.states.items() if name in profile.acting}
        placed = Placed(evaluation.pod.placed_on(node), node, states, evaluated, feasible, trace=self.trace)
        return self.take(profile, placed)

    def take(self, profile: Profile, placed: Placed) -> Outcome:
        """Assume a pod on its node, and run Reserve and Permit; if they refuse, nothing is taken."""
        self._cluster.assume(placed.pod, placed.node)
        refused = self._reserve(profile, placed.states, placed.pod, placed.node)
        if refused is None:
            outcome = self.permit(profile, placed)
            if isinstance(outcome, Placed):
                return outcome
            refused = outcome
        self.give_back(profile, placed)
        return refusal(refused)

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
        """Ask for permission for a pod that is assumed: the pod with what it still has to wait for, or a refusal."""
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
        """Undo Reserve, last plugin first, and forget the pod; False if it had no place any more to be forgotten."""
        caller, start, status = profile.caller, profile.caller.started(), Code.SUCCESS
        for hook in reversed(profile.reserve):
            assert hook.unreserve is not None
            if not hook.concerns(placed.states):
                continue
            try:
                caller.call(hook.unreserve, placed.states.get(hook.name), placed.pod, placed.node)
            except PluginError as error:
                # Unreserve must not fail; a plugin that does must not keep the others from cleaning up.
                status = Code.ERROR
                caller.failed(error)
        caller.finished("Unreserve", status, start)
        return self._cluster.forget(placed.pod.uid)


def refusal(refused: Rejection | PluginError) -> Failed:
    """The outcome when the one node that was chosen could not be taken after all."""
    if isinstance(refused, PluginError):
        return Failed(Code.ERROR, str(refused), failing_plugin=refused.plugin)
    counted = ", ".join(sorted(f"1 {reason}" for reason in refused.reasons))
    message = f"0/1 nodes are available: {counted}." if counted else "0/1 nodes are available:"
    if refused.code is Code.PENDING:
        return Failed(refused.code, message, pending_plugins=frozenset((refused.plugin,)))
    if refused.code is Code.ERROR:
        return Failed(refused.code, refused.message)
    return Failed(refused.code, message, frozenset((refused.plugin,)))

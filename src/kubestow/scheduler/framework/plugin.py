"""The extension points: what a plugin may implement.

Having a method is registering for its point. In-tree plugins are written in vector form: `filter_rows` and
`score_rows` answer for any rows of any view at once. A plugin of your own may have the plain form instead, `filter`
and `score`, called node by node; see `plain`.

What a plugin computes in `pre_filter` is its return value, the `state`, handed to its own `filter_rows`; likewise
`pre_score` and `score_rows`. Reserve to PostBind receive the state of `pre_filter` too.
"""

from collections.abc import Hashable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows
from kubestow.scheduler.cluster.events import Registration
from kubestow.scheduler.cluster.nominated import NominatedBeside
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.placements import GroupVictims, PlacedPods, Placement, TriedGroup
from kubestow.scheduler.framework.results import (
    Narrowed,
    PostFilterResult,
    Rejection,
    Rejections,
    Skip,
    Wait,
)
from kubestow.scheduler.framework.verdicts import Verdicts


class Plugin(Protocol):
    """Every plugin has a name; the rest is optional."""

    name: str


@runtime_checkable
class Requeues(Protocol):
    """Says which events are worth another attempt for pods that this plugin rejected. Without it: any event."""

    def requeue_on(self) -> Sequence[Registration]: ...


@runtime_checkable
class PreEnqueue(Protocol):
    """Keeps a pod out of the queue until it is ready to be scheduled."""

    def pre_enqueue(self, pod: Pod) -> Rejection | None: ...


@runtime_checkable
class QueueSort(Protocol):
    """Orders waiting pods: the smallest key is scheduled first. A profile has exactly one, all profiles the same."""

    def sort_key(self, pod: Pod, waiting_since: float) -> Any: ...


@runtime_checkable
class PreFilter(Protocol):
    """Looks at the pod and the cluster as a whole, once a cycle."""

    def pre_filter(self, pod: PodInfo) -> Any | Skip | Narrowed | Rejection: ...


class Change(NamedTuple):
    """A pod that is, in a what-if, on a row of the cluster where it is not (added), or the other way round."""

    pod: PodInfo
    row: int
    added: bool


@runtime_checkable
class AdaptsToChanges(Protocol):
    """For a PreFilter whose state counts pods on many nodes: the state as it would be after some changes.

    Returning the very state that was given says that none of the changes matters.

    `counted_rows(state, pod) -> BoolArray`, if a plugin has it, says by row whether there are pods that the state
    counts: what would leave other rows does not matter, and need not be asked about.
    """

    def with_changes(self, state: Any, pod: PodInfo, changes: Sequence[Change]) -> Any: ...


class PodsRead(IntEnum):
    """What of the pods on a node a plugin's filter and score look at."""

    NOTHING = 0
    """Which pods are on the node makes no difference (but for the state, if that adapts to changes)."""
    SUMS = 1
    """Only `requested` and `pod_count`; scores also `non_zero`."""
    ALL = 2


def pods_read_by(plugin: Any) -> PodsRead:
    """What of the pods on a node a plugin says it looks at."""
    reads: PodsRead = getattr(plugin, "reads_pods", PodsRead.ALL)
    return reads


@runtime_checkable
class Signs(Protocol):
    """Lets equal pods share results: says what, of a pod, the plugin's answers on a row depend on.

    Where two pods have equal parts, and a row has the same node and pods, `filter_rows` and `score_rows` must say the
    same of it, whatever goes on elsewhere; `pre_filter` and `pre_score` must not depend on other nodes or pods at all.
    None: this pod's answers depend on more than that.

    `row_rejection(state, view, row) -> Rejection | None` and `row_score(state, view, row) -> int | None`, if a plugin
    has them, answer for a single row in plain numbers, which is faster than an array of one. A row that is not rejected
    passes; a score of None leaves it to `score_rows`.
    """

    def sign(self, pod: PodInfo) -> Hashable | None: ...


class RowsOfPods:
    """Rows that are each for one of some pods."""

    def __init__(self, pod_of: IntArray) -> None:
        self._pod_of = pod_of
        self._known: dict[tuple[int, ...], IntArray] = {}

    def spread(self, amounts: Sequence[int]) -> IntArray:
        """By row, the amount of the pod that it is for. Several plugins ask about the same amounts."""
        key = tuple(amounts)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = np.array(key, np.int64)[self._pod_of]
        return found


class JoinsStates(Protocol):
    """For a plugin that signs and looks at sums of pods alone: judges several pods at once, each on rows of its own.

    Given what its `pre_filter` (or `pre_score`) computed for some pods, it answers with a state for rows that are each
    for one of them, in which `rows.spread` makes amounts by row out of amounts by pod. None: they cannot be joined.
    """

    def join_states(self, states: Sequence[Any], rows: RowsOfPods) -> Any | None: ...

    def join_score_states(self, states: Sequence[Any], rows: RowsOfPods) -> Any | None: ...


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes. None: every row will do.

    `costly_rows = True`: call only for rows that nobody refused yet. `reads_pods = PodsRead.NOTHING` (or `SUMS`):
    spares what-ifs some work; without it, a filter is taken to read all.
    """

    def filter_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None: ...


@runtime_checkable
class PassesRows(Protocol):
    """For a filter that can tell faster which rows pass when nobody asks why others do not.

    Asked only with a state of its own PreFilter.
    """

    def passing_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> BoolArray: ...


class FailedEvaluation(Protocol):
    """An evaluation that found no node."""

    @property
    def states(self) -> dict[str, Any]: ...
    @property
    def skipped(self) -> set[str]: ...
    @property
    def signature(self) -> Hashable | None:
        """Equal for pods of one priority that are the same to all filters; None: not known.

        What was found out about a row for one of them is true of the others until the row's version changes, but where
        one of the two is nominated to the row: it leaves no room for itself.
        """
        ...

    @property
    def nominated_row(self) -> int | None:
        """The row that the pod itself is nominated to."""
        ...

    @property
    def rejected(self) -> Rejection | None:
        """The refusal of PreFilter, if it refused the pod as a whole."""
        ...

    @property
    def verdicts(self) -> Verdicts | None:
        """What the filters said, of the rows that PreFilter left."""
        ...

    @property
    def nominated(self) -> NominatedBeside | None:
        """The pods nominated to nodes that the pod must leave room for."""
        ...

    def states_after(self, changes: Sequence[Change]) -> dict[str, Any]:
        """The states of all plugins as they would be after some changes."""
        ...

    @property
    def has_adapting_states(self) -> bool:
        """Whether a change of pods on one node may change what a filter says of another."""
        ...

    @property
    def counted_rows(self) -> BoolArray:
        """By row, whether there may be pods that a filter's state counts."""
        ...

    @property
    def reads_pods(self) -> PodsRead:
        """The most that any of the filters reads of the pods on a node."""
        ...

    def refuses(self, states: dict[str, Any], view: NodeView) -> Verdicts:
        """What the filters would say of all rows of a what-if."""
        ...

    def still_passing(self, states: dict[str, Any], view: NodeView) -> BoolArray:
        """Which rows of a what-if still pass, that passed all filters before with other pods on them."""
        ...


@runtime_checkable
class PostFilter(Protocol):
    """Tries to make room when no node will do."""

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult: ...


@runtime_checkable
class PreScore(Protocol):
    """Looks at the nodes that passed (`rows`), once a cycle."""

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> Any | Skip: ...


@runtime_checkable
class Score(Protocol):
    """Says how good nodes are: larger is better. From 0 to MAX_SCORE, unless `normalize` brings them there.

    `rows` may hold more rows than `pre_score` saw; what is said of the others is not looked at.
    """

    def score_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray: ...


@runtime_checkable
class NormalizeScore(Protocol):
    """Brings the scores of the nodes that passed (`rows`) to 0..MAX_SCORE.

    `normalizes_scores_alone = True`: looks at nothing but the scores, and where they are all the same, their number
    makes no difference. Spares equal pods the work where that is so.
    """

    def normalize(self, state: Any, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray: ...


@runtime_checkable
class Reserve(Protocol):
    """Takes what the pod needs on its node, in memory; `unreserve` gives it back and must not fail.

    Both receive the state of `pre_filter` (None if it skipped). `unreserve` may be called without `reserve`.
    `needs_state = True`: neither these nor `pre_bind` are called for pods for which `pre_filter` left no state.
    """

    def reserve(self, state: Any, pod: PodInfo, node: str) -> Rejection | None: ...

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None: ...


@runtime_checkable
class Permit(Protocol):
    """Allows (None), refuses, or delays the binding of a pod."""

    def permit(self, state: Any, pod: PodInfo, node: str) -> Rejection | Wait | None: ...


@runtime_checkable
class PreBind(Protocol):
    """Does what must be done before the pod is bound. `pre_bind_needed` False: nothing to do for this pod."""

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool: ...

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> Rejection | None: ...


@runtime_checkable
class Bind(Protocol):
    """Binds the pod; SKIP leaves it to the next bind plugin."""

    async def bind(self, pod: PodInfo, node: str) -> Skip | None: ...


@runtime_checkable
class PostBind(Protocol):
    """Is told that the pod was bound."""

    def post_bind(self, state: Any, pod: PodInfo, node: str) -> None: ...


@runtime_checkable
class PlacementGenerate(Protocol):
    """Says among which nodes a pod group may be placed, given all nodes that are to be considered.

    The group is tried within each of the placements. None at all: the group cannot be placed now.
    """

    def generate_placements(self, group: TriedGroup, within: Placement) -> Sequence[Placement]: ...


@runtime_checkable
class PlacementScore(Protocol):
    """Says how good placements are in which a group can be placed: larger is better, from 0 to MAX_SCORE.

    All of them are scored at once, so that they can be compared.
    """

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> Sequence[int] | IntArray: ...


class PodGroupPostFilter(Protocol):
    """For a PostFilter plugin: who could be evicted for a pod group that cannot be placed, or why nobody."""

    def pod_group_post_filter(self, group: TriedGroup) -> GroupVictims | Rejection: ...


class CountsCopies(Protocol):
    """For a filter that looks at the pods on a node: how many equal pods, one after the other, a row would take.

    Spares a group of equal pods being tried pod by pod where it is plain from the count that it does not fit.
    """

    def copies_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray: ...


POINTS: Mapping[str, tuple[type, ...]] = {
    "preEnqueue": (PreEnqueue,),
    "queueSort": (QueueSort,),
    "preFilter": (PreFilter,),
    "filter": (Filter,),
    "postFilter": (PostFilter,),
    "preScore": (PreScore,),
    "score": (Score,),
    "reserve": (Reserve,),
    "permit": (Permit,),
    "preBind": (PreBind,),
    "bind": (Bind,),
    "postBind": (PostBind,),
    "placementGenerate": (PlacementGenerate,),
    "placementScore": (PlacementScore,),
}
"""Extension points by their name in the configuration, with the protocol that a plugin must satisfy."""

"""The extension points: the methods that a plugin may implement.

A plugin that has the method of a point is registered for it. In-tree plugins are written in vector form: `filter_rows`
and `score_rows` return results for any rows of any view at once. Other plugins may have the plain form instead,
`filter` and `score`, called node by node; see `plain`.

The return value of `pre_filter` is the `state` of the plugin, which is passed to its `filter_rows`, and to its methods
from Reserve to PostBind; None if it is `SKIP`. `score_rows` and `normalize` get the return value of `pre_score`, and
without that method the same state as the others.

The protocols are also base classes for plugins, with the type of the state as a parameter: `PreFilter[Amounts]`. A type
checker then checks the methods, and a plugin that lacks one is not loaded.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows
from kubestow.scheduler.cluster.events import Registration
from kubestow.scheduler.cluster.nominated import CompetingNominations
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.placements import GroupVictims, PlacedPods, Placement, TriedGroup
from kubestow.scheduler.framework.plain import NodeRow
from kubestow.scheduler.framework.results import (
    Candidates,
    Narrowed,
    PostFilterResult,
    Rejection,
    Rejections,
    Skip,
    Wait,
)
from kubestow.scheduler.framework.verdicts import Verdicts

S_co = TypeVar("S_co", covariant=True)
S_contra = TypeVar("S_contra", contravariant=True)
"""The state of a plugin: what its `pre_filter` (for scores, `pre_score`) returns."""


class Plugin(Protocol):
    """Every plugin has a name; everything else is optional."""

    name: str


@runtime_checkable
class Requeues(Protocol):
    """Returns the events that retry pods rejected by this plugin. Without it: DEFAULT_REGISTRATIONS."""

    @abstractmethod
    def requeue_on(self) -> Sequence[Registration]: ...


@runtime_checkable
class PreEnqueue(Protocol):
    """Keeps a pod out of the active queue until it is ready to be scheduled."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Rejection | None: ...


@runtime_checkable
class QueueSort(Protocol):
    """Orders waiting pods: the smallest key is scheduled first. A profile has exactly one, all profiles the same."""

    @abstractmethod
    def sort_key(self, pod: Pod, waiting_since: float) -> Any: ...


@runtime_checkable
class PreFilter(Protocol[S_co]):
    """Evaluates the pod against the whole cluster, once per cycle."""

    @abstractmethod
    def pre_filter(self, pod: PodInfo) -> S_co | Skip | Narrowed | Rejection: ...


class Change(NamedTuple):
    """A pod that a what-if adds to, or removes from, a row of the cluster."""

    pod: PodInfo
    row: int
    added: bool


@runtime_checkable
class AdaptsToChanges(Protocol):
    """For a PreFilter whose state counts pods on many nodes: returns the state after some changes.

    If none of the changes matters, it returns the given state itself.

    `counted_rows(state, pod) -> BoolArray`, optional, returns by row whether it has pods that the state counts:
    `with_changes` is not called for a removal of pods from other rows.
    """

    def with_changes(self, state: Any, pod: PodInfo, changes: Sequence[Change]) -> Any: ...


class PodsRead(IntEnum):
    """The properties of the pods on a node that a plugin's filter and score read."""

    NOTHING = 0
    """The pods on the node make no difference (except for the state, if that adapts to changes)."""
    SUMS = 1
    """Only `requested` and `pod_count`; scores also `non_zero`."""
    ALL = 2


def pods_read_by(plugin: Any) -> PodsRead:
    """Return what a plugin declares to read of the pods on a node; ALL without a declaration."""
    reads: PodsRead = getattr(plugin, "reads_pods", PodsRead.ALL)
    return reads


@runtime_checkable
class Signs(Protocol):
    """Lets equal pods share results: returns everything of a pod that the plugin's results for a row depend on.

    If two pods have equal signatures, and a row has the same node and pods, `filter_rows` and `score_rows` must return
    the same for it, whatever changes elsewhere; `pre_filter` and `pre_score` must not depend on other nodes or pods.
    None: the results for this pod depend on more than that.

    `row_rejection(state, view, row) -> Rejection | None` and `row_score(state, view, row) -> int | None`, optional,
    return the result for one row as Python values, which is faster than an array of one. None is a row that passes,
    or a score that is left to `score_rows`.
    """

    @abstractmethod
    def sign(self, pod: PodInfo) -> Hashable | None: ...


class RowsOfPods:
    """Rows of which each is evaluated for one of several pods."""

    def __init__(self, pod_of: IntArray) -> None:
        self._pod_of = pod_of
        self._known: dict[tuple[int, ...], IntArray] = {}

    def spread(self, amounts: Sequence[int]) -> IntArray:
        """Return, by row, the amount of its pod. Cached, since several plugins request the same amounts."""
        key = tuple(amounts)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = np.array(key, np.int64)[self._pod_of]
        return found


class JoinsStates(Protocol):
    """For a plugin with signatures that reads only sums of pods: evaluates several pods at once, each on its own rows.

    Given the states of several pods (from `pre_filter` or `pre_score`), it returns one state for rows of which each
    belongs to one of them; `rows.spread` converts amounts by pod to amounts by row. None: they cannot be joined.
    """

    def join_states(self, states: Sequence[Any], rows: RowsOfPods) -> Any | None: ...

    def join_score_states(self, states: Sequence[Any], rows: RowsOfPods) -> Any | None: ...


@runtime_checkable
class FilterRows(Protocol[S_contra]):
    """Rejects nodes. None: no row is rejected.

    `costly_rows = True`: called only for rows that no other filter has rejected yet. `reads_pods = PodsRead.NOTHING`
    (or `SUMS`): makes what-ifs faster; the default is ALL.
    """

    @abstractmethod
    def filter_rows(self, state: S_contra, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None: ...


class Filter(Protocol[S_contra]):
    """The plain form of a filter: returns why a node is rejected, or None. See `plain`."""

    @abstractmethod
    def filter(self, state: S_contra, pod: PodInfo, node: NodeRow) -> str | Rejection | None: ...


class Score(Protocol[S_contra]):
    """The plain form of a score. See `plain`."""

    @abstractmethod
    def score(self, state: S_contra, pod: PodInfo, node: NodeRow) -> int: ...


@runtime_checkable
class PassesRows(Protocol):
    """For a filter that is faster if no reasons are needed.

    Called only with a state of its own PreFilter.
    """

    def passing_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> BoolArray: ...


class FailedEvaluation(Protocol):
    """An evaluation that found no feasible node."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def states(self) -> dict[str, Any]: ...
    @property
    def skipped(self) -> set[str]: ...
    @property
    def signature(self) -> Hashable | None:
        """Equal for pods of one priority that are the same to all filters; None: not known.

        A result for a row is valid for all pods with this signature until the row's version changes, unless one of them
        is nominated to the row: a pod does not leave capacity for itself.
        """
        ...

    @property
    def nominated_row(self) -> int | None:
        """The row that this pod is nominated to."""
        ...

    @property
    def rejected(self) -> Rejection | None:
        """The rejection by PreFilter, if it rejected the pod as a whole."""
        ...

    @property
    def verdicts(self) -> Verdicts | None:
        """The results of the filters for the rows that PreFilter left."""
        ...

    @property
    def nominated(self) -> CompetingNominations | None:
        """The nominated pods that this pod must leave capacity for."""
        ...

    def ignoring(self, plugin: str) -> "FailedEvaluation":
        """Return the evaluation as it would be if the plugin had returned Skip in PreFilter; some nodes may pass."""
        ...

    def states_after(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return the states of all plugins as they would be after some changes."""
        ...

    @property
    def has_adapting_states(self) -> bool:
        """Whether a change of pods on one node may change the result of a filter for another node."""
        ...

    @property
    def counted_rows(self) -> BoolArray:
        """By row, whether it may have pods that a filter's state counts."""
        ...

    @property
    def reads_pods(self) -> PodsRead:
        """The maximum that any of the filters reads of the pods on a node."""
        ...

    def refuses(self, states: dict[str, Any], view: NodeView) -> Verdicts:
        """Return the results of the filters for all rows of a what-if."""
        ...

    def still_passing(self, states: dict[str, Any], view: NodeView) -> BoolArray:
        """Return which rows of a what-if still pass, of rows that all passed with other pods on them."""
        ...


@runtime_checkable
class PostFilter(Protocol):
    """Makes a pod schedulable if no node is feasible, for example by preemption."""

    @abstractmethod
    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates: ...


@runtime_checkable
class PreScore(Protocol[S_co]):
    """Evaluates the feasible nodes (`rows`), once per cycle."""

    @abstractmethod
    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> S_co | Skip: ...


@runtime_checkable
class ScoreRows(Protocol[S_contra]):
    """Scores nodes: larger is better. From 0 to MAX_SCORE, unless `normalize` converts the scores to that range.

    `rows` may contain more rows than `pre_score` got; the scores of the others are not used.
    """

    @abstractmethod
    def score_rows(self, state: S_contra, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray: ...


@runtime_checkable
class NormalizeScore(Protocol[S_contra]):
    """Converts the scores of the feasible nodes (`rows`) to the range 0..MAX_SCORE.

    `normalizes_scores_alone = True`: depends on nothing but the scores, and if all are equal, not on their number.
    Equal pods can then share normalized scores.
    """

    @abstractmethod
    def normalize(
        self, state: S_contra, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray
    ) -> IntArray: ...


@runtime_checkable
class Reserve(Protocol[S_contra]):
    """Reserves in memory what the pod needs on its node; `unreserve` releases it and must not fail.

    A plugin that only wants to know that a pod failed after its node was chosen has `unreserve` alone. Both receive the
    state of `pre_filter` (None if it skipped). `unreserve` may be called without `reserve`.
    `needs_state = True`: these and `pre_bind` are only called for pods for which `pre_filter` returned a state.
    """

    def reserve(self, state: S_contra, pod: PodInfo, node: str) -> Rejection | None:
        del state, pod, node
        return None

    @abstractmethod
    def unreserve(self, state: S_contra, pod: PodInfo, node: str) -> None: ...


@runtime_checkable
class Permit(Protocol[S_contra]):
    """Allows (None), rejects, or delays the binding of a pod."""

    @abstractmethod
    def permit(self, state: S_contra, pod: PodInfo, node: str) -> Rejection | Wait | None: ...


@runtime_checkable
class PreBind(Protocol[S_contra]):
    """Prepares the binding of a pod. `pre_bind_needed` returns False if there is nothing to do for this pod."""

    @abstractmethod
    def pre_bind_needed(self, state: S_contra, pod: PodInfo, node: str) -> bool: ...

    @abstractmethod
    async def pre_bind(self, state: S_contra, pod: PodInfo, node: str) -> Rejection | None: ...


@runtime_checkable
class Bind(Protocol):
    """Binds the pod; SKIP leaves it to the next bind plugin."""

    @abstractmethod
    async def bind(self, pod: PodInfo, node: str) -> Skip | None: ...


@runtime_checkable
class PostBind(Protocol[S_contra]):
    """Called after the pod was bound."""

    @abstractmethod
    def post_bind(self, state: S_contra, pod: PodInfo, node: str) -> None: ...


@runtime_checkable
class PlacementGenerate(Protocol):
    """Returns the sets of nodes among which a pod group may be placed, given all nodes to consider.

    The group is tried within each of the placements. No placement: the group cannot be placed now.
    """

    @abstractmethod
    def generate_placements(self, group: TriedGroup, within: Placement) -> Sequence[Placement]: ...


@runtime_checkable
class PlacementScore(Protocol):
    """Scores placements in which a group can be placed: larger is better, from 0 to MAX_SCORE.

    All of them are scored at once, so that they can be compared.
    """

    @abstractmethod
    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> Sequence[int] | IntArray: ...


@runtime_checkable
class PodGroupPostFilter(Protocol):
    """Returns the pods that may be evicted for a group that cannot be placed, or why there are none.

    Plugins run in order until one returns `GroupVictims`, or a rejection that preemption cannot resolve.
    """

    def pod_group_post_filter(self, group: TriedGroup) -> GroupVictims | Rejection: ...


class CountsCopies(Protocol):
    """For a filter that reads the pods on a node: the number of equal pods that each row can take one after the other.

    A group of equal pods whose number exceeds the total is rejected without being tried pod by pod.
    """

    def copies_rows(self, state: Any, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray: ...


POINTS: Mapping[str, tuple[type, ...]] = {
    "preEnqueue": (PreEnqueue,),
    "queueSort": (QueueSort,),
    "preFilter": (PreFilter,),
    "filter": (FilterRows,),
    "postFilter": (PostFilter,),
    "preScore": (PreScore,),
    "score": (ScoreRows,),
    "reserve": (Reserve,),
    "permit": (Permit,),
    "preBind": (PreBind,),
    "bind": (Bind,),
    "postBind": (PostBind,),
    "placementGenerate": (PlacementGenerate,),
    "placementScore": (PlacementScore,),
    "podGroupPostFilter": (PodGroupPostFilter,),
}
"""Extension points by their name in the configuration, with the protocol that a plugin must satisfy."""

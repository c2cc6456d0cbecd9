"""All pending pods, grouped by owner and cause: how many, since when, why, and the change that helps most of them.

Pods with equal specs are evaluated once, and the groups that have waited longest are examined first: what exceeds the
time limit has only the reasons of its nodes. The number of pods that a change helps is counted with the capacity of
the nodes, or by placing some of them one after another where they depend on each other.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from kubestow.api.lazy import lazy
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_name
from kubestow.api.priority import pod_priority
from kubestow.api.timestamps import format_time, parse_time
from kubestow.insight.decisions.schema import VERSION
from kubestow.insight.explain.causes import Cause, causes_of
from kubestow.insight.explain.changes import NODE, POD, Change, changed, combine_changes, evaluate, feasible_after
from kubestow.insight.explain.cluster_changes import node_kinds, node_like
from kubestow.insight.explain.commands import commands_for
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.insight.explain.obstacles import scheduler_changes
from kubestow.insight.explain.owners import Owner
from kubestow.insight.explain.together import nearest_together
from kubestow.insight.explain.world import ExplainError, NoProfileError, World
from kubestow.insight.explain.would_fit import found_changes
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.results import PluginError

_FITS = "it fits now, and will be tried again"
_TIME_LIMIT = 2.0
"""Seconds for causes and changes."""
_MOST_PLACED = 10
"""Maximum number of pods that are placed one after another to count those that a change helps."""
_TRIED = 3
_MOST_OTHERS = 5
_NAMED = 5
_CLEAR = 0.15
"""The size of a change that needs no alternatives: it replaces or creates something that does not exist."""
_EACH_KIND = "all"
_NEW = "new-node"
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_PER_POD_LABELS = (
    *("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"),
    "batch.kubernetes.io/job-completion-index",
)


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change that helps most pods of a group."""

    side: str
    change: str
    helps: int
    """Number of pods of the group that have a node after the change."""
    helpsOthers: int = 0
    """Number of pods of other groups that have one, too."""
    atLeast: bool = False
    """Whether more pods may be helped than were counted."""
    commands: tuple[str, ...] = ()
    """The kubectl commands for the change."""


class PendingGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pending pods of one owner with the same cause."""

    owner: str
    """Kind, namespace and name."""
    count: int
    since: str
    """The creation of the oldest pod."""
    cause: str
    pods: tuple[str, ...]
    """Some of the pods, the oldest first."""
    plugin: str = ""
    """The plugin that rejects the pods; empty if they fit."""
    remedy: Remedy | None = None


class LetIn(msgspec.Struct, frozen=True):
    """What one more node like an existing one would let in."""

    like: str
    """The existing node."""
    nodes: int
    """Number of nodes of this kind."""
    pods: int
    """Number of pending pods that would be placed there."""
    owners: dict[str, int]
    """The same by owner."""


class PendingOverview(msgspec.Struct, frozen=True, omit_defaults=True):
    """All pending pods."""

    time: str
    pending: int
    groups: tuple[PendingGroup, ...]
    """Those that have waited longest first."""
    oneMoreNode: tuple[LetIn, ...] = ()
    notes: tuple[str, ...] = ()
    version: int = VERSION

    def tree(self) -> dict[str, Any]:
        """Return the overview as JSON objects."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {"version": self.version} | found

    def without_times(self) -> "PendingOverview":
        """Return the overview without the time at which it was made."""
        return replace(self, time="")


class _Spec:
    """Pods with equal specs, and the evaluation of one of them."""

    def __init__(self, run: DryRun | None, plugin: str, text: str, more: Sequence[Change] = ()) -> None:
        """`more`: changes that may help if there is no run."""
        self.run = run
        self._more = more
        self.plugin = plugin
        self.text = text
        self.is_examined = False
        self.helped: dict[tuple[str, int], tuple[int, bool]] = {}
        """Results of `_helped`, by the text of a change and the number of pods."""

    @lazy
    def causes(self) -> list[Cause]:
        return [] if self.run is None else causes_of(self.run)

    @lazy
    def changes(self) -> list[Change]:
        """Changes that help one of the pods, the smallest first: of its causes, else single, else several."""
        run = self.run
        if run is None or run.fits:
            return [*self._more]
        quick = (change for cause in self.causes for change in cause.changes if change.size < _CLEAR)
        found = [change for change in quick if feasible_after(run.world, run.pod.pod, change)]
        found = found or [one.change for one in found_changes(run, self.causes, enough=_TRIED)]
        return found or [combine_changes(some) for _, some in [nearest_together(run)] if some]


class _Group:
    """Pods of one owner that are rejected by the same plugin."""

    def __init__(self, owner: Owner, spec: _Spec) -> None:
        self.owner = owner
        self.spec = spec
        """The spec of the first pod."""
        self.by_spec: dict[_Spec, list[Pod]] = {}
        self.causes: list[Cause] = []
        self.remedy: Remedy | None = None

    @property
    def pods(self) -> list[Pod]:
        return [pod for pods in self.by_spec.values() for pod in pods]

    @property
    def since(self) -> float:
        """The creation of the oldest pod; infinite if it is unknown."""
        return _created(self.by_spec[self.spec][0])


def pending_overview(
    world: World, pods: Iterable[Pod], what_if_node: str = "", notes: tuple[str, ...] = ()
) -> PendingOverview:
    """Return the overview of some pending pods of a world. Raises ExplainError for an unknown node kind.

    `what_if_node`: a node of whose kind one more is tried; `all`: of each kind.
    """
    chosen = sorted(pods, key=lambda pod: (_created(pod), pod.key))
    groups = sorted(_grouped(world, chosen), key=lambda group: (group.since, -len(group.pods), group.owner))
    end = perf_counter() + _TIME_LIMIT
    for group in groups:
        if group.spec.is_examined or perf_counter() < end:
            group.spec.is_examined = True
            group.causes = group.spec.causes
            group.remedy = _remedy(world, group, groups)
    left = [group for group in groups if not group.spec.is_examined]
    if left:
        count = sum(len(group.pods) for group in left)
        owners = f"{len(left)} owner{'s' if len(left) > 1 else ''}"
        what = f"{count} pods of {owners} were not examined in {_TIME_LIMIT:g} seconds"
        notes += (f"{what}: for their causes, select them, for example by owner as {left[0].owner.text}.",)
    let_in = tuple(_one_more_node(world, chosen, what_if_node)) if what_if_node else ()
    return PendingOverview(
        format_time(world.now), len(chosen), tuple(_shown(group, world.now) for group in groups), let_in, notes
    )


def _created(pod: Pod) -> float:
    try:
        return parse_time(pod.metadata.creationTimestamp or "")
    except ValueError:
        return math.inf


def _shown(group: _Group, now: float) -> PendingGroup:
    spec, names = group.spec, tuple(pod.key for pod in group.pods[:_NAMED])
    text = group.causes[0].text if group.causes else spec.text
    return PendingGroup(
        group.owner.text, len(group.pods), format_time(min(group.since, now)), text, names, spec.plugin, group.remedy
    )


# Groups


def _grouped(world: World, pods: Sequence[Pod]) -> Iterable[_Group]:
    """Group pods by owner and by the plugin that rejects them."""
    groups: dict[tuple[Owner, str], _Group] = {}
    specs: dict[bytes, _Spec] = {}
    for pod in pods:
        owner, text = Owner.of(pod, world.cluster.listers), _spec_of(pod)
        spec = specs.get(text)
        if spec is None:
            spec = specs[text] = _evaluated(world, pod)
        group = groups.setdefault((owner, spec.plugin or spec.text), _Group(owner, spec))
        group.by_spec.setdefault(spec, []).append(pod)
    return groups.values()


def _spec_of(pod: Pod) -> bytes:
    """Return a text that is equal for pods that are scheduled alike."""
    meta = pod.metadata
    labels = sorted((key, value) for key, value in meta.labels.items() if key not in _PER_POD_LABELS)
    return msgspec.json.encode((meta.namespace, pod.spec, labels, pod.status.nominatedNodeName))


def _evaluated(world: World, pod: Pod) -> _Spec:
    group = group_name(pod)
    info = world.remove_for_scheduling(pod)
    try:
        run = DryRun(world, info, only_filters=True)
    except NoProfileError as error:
        return _Spec(None, "", str(error).partition(": ")[2], scheduler_changes(pod, error.similar))
    finally:
        world.add_pending(pod)
    if run.gated is not None:
        return _Spec(run, run.gated.plugin, run.gated.message)
    if group:
        return _Spec(None, "", f"see kubestow explain podgroup/{group} -n {pod.metadata.namespace}")
    if run.fits or run.evaluation_run.error:
        return _Spec(run if run.fits else None, "", run.evaluation_run.error or _FITS)
    return _Spec(run, _main_plugin(run), run.message.rpartition("nodes are available: ")[2].removesuffix("."))


def _main_plugin(run: DryRun) -> str:
    """Return the plugin that rejects the pod as a whole, or most of the nodes."""
    evaluation = run.evaluation
    if evaluation.rejected is not None:
        return evaluation.rejected.plugin or ", ".join(evaluation.narrowed_by)
    found: Counter[str] = Counter()
    for rejection, positions in () if evaluation.verdicts is None else evaluation.verdicts.kinds():
        found[rejection.plugin] += len(positions)
    return max(found, key=lambda plugin: (found[plugin], plugin), default="")


# What would help


def _remedy(world: World, group: _Group, groups: Sequence[_Group]) -> Remedy | None:
    """Return the change that helps most pods of a group; of several, the smallest."""
    best: Remedy | None = None
    for change in group.spec.changes[:_TRIED]:
        helps, is_all = _helped(world, group, change)
        if best is None or helps > best.helps:
            others, commands = _others(world, group, groups, change), commands_for(world, group.pods[0], change)
            best = Remedy(change.side, change.text, helps, others, not is_all, commands)
        if best.helps == len(group.pods):
            break
    return best


def _others(world: World, group: _Group, groups: Sequence[_Group], change: Change) -> int:
    """Return how many pods of other groups a change of a node or of the cluster helps."""
    if change.side == POD:
        return 0
    alike = (other for other in groups if other is not group and other.spec.plugin == group.spec.plugin)
    return sum(_helped(world, other, change)[0] for other in islice(alike, _MOST_OTHERS))


def _helped(world: World, group: _Group, change: Change) -> tuple[int, bool]:
    """Return how many pods of a group have a node after a change, and whether all of them were counted."""
    helps, is_all = 0, len(group.by_spec) <= _MOST_PLACED
    for spec, pods in islice(group.by_spec.items(), _MOST_PLACED):
        key = change.text, len(pods)
        if key not in spec.helped:
            spec.helped[key] = _count_helped(world, pods, change)
        helps, is_all = helps + spec.helped[key][0], is_all and spec.helped[key][1]
    return helps, is_all


def _count_helped(world: World, pods: Sequence[Pod], change: Change) -> tuple[int, bool]:
    info = world.remove_for_scheduling(pods[0])
    try:
        with changed(world, change):
            evaluation = evaluate(world, _after(pods[0], change))
            if evaluation is None or evaluation.verdicts is None:
                return 0, True
            rows = evaluation.verdicts.feasible()
            if not evaluation.has_adapting_states:
                room = len(rows) if evaluation.pod.ports else _capacity(evaluation, rows)
                return min(room, len(pods)), True
            count = _placed(world, [_after(pod, change) for pod in pods[:_MOST_PLACED]])
            return count, not count == _MOST_PLACED < len(pods)
    finally:
        world.add_pending(info.pod)


def _after(pod: Pod, change: Change) -> Pod:
    """Return a pod after a change of another pod with the same owner."""
    return pod if change.pod is None else replace(change.pod, metadata=pod.metadata)


def _capacity(evaluation: Evaluation, rows: IntArray) -> int:
    """Return how many pods with the same requests the feasible nodes can take."""
    table = evaluation.cluster.nodes
    room = table.allowed_pods[rows] - table.pod_count[rows]
    for name, amount in evaluation.pod.requests.amounts.items():
        if amount > 0 and name in table.resource_index:
            column = table.resource_index[name]
            room = np.minimum(room, (table.allocatable[column, rows] - table.requested[column, rows]) // amount)
    # Each of these nodes is feasible for one pod.
    return int(np.maximum(room, 1).sum())


def _placed(world: World, pods: Sequence[Pod]) -> int:
    """Return how many of the pods get a node one after another, up to the first that does not."""
    cluster, placed = world.cluster, []
    try:
        for pod in pods:
            evaluation = evaluate(world, pod)
            if evaluation is None or evaluation.verdicts is None or not len(rows := evaluation.verdicts.feasible()):
                break
            node = cluster.nodes.names[int(rows[0])]
            cluster.assume(evaluation.pod.placed_on(node), node)
            placed.append(pod.metadata.uid)
    finally:
        for uid in placed:
            cluster.forget(uid)
    return len(placed)


# One more node


def _one_more_node(world: World, pods: Sequence[Pod], wanted: str) -> Iterator[LetIn]:
    """Yield what one more node lets in, for the kind of a node or for each kind; those that let in most come first."""
    kinds = world.of_nodes(node_kinds)
    if wanted != _EACH_KIND:
        of = [kind for kind in kinds if any(wanted in (node.metadata.name, *_types(node)) for node in kind)]
        if not of:
            known = [name for kind in kinds for name in (kind[0].metadata.name, *_types(kind[0]))]
            raise ExplainError(
                f"no node has the name or the instance type {wanted}{did_you_mean(nearest(wanted, known))}"
            )
        kinds = of
    found = []
    for kind in kinds:
        new = node_like(kind[0], _NEW)
        with changed(world, Change(NODE, "", 1.0, nodes=(new,))):
            owners = Counter(Owner.of(pod, world.cluster.listers).text for pod in _let_in(world, pods))
        found.append(LetIn(kind[0].metadata.name, len(kind), owners.total(), dict(owners.most_common())))
    yield from sorted(found, key=lambda one: (-one.pods, one.like))


def _types(node: Node) -> tuple[str, ...]:
    kind = node.metadata.labels.get(_INSTANCE_TYPE)
    return () if kind is None else (kind,)


def _let_in(world: World, pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods that are placed on the new node, in the order of a queue. Pods that fit elsewhere are not."""
    cluster, row = world.cluster, world.cluster.nodes.row_of[_NEW]
    within: IntArray = np.array([row])
    others: IntArray = np.setdiff1d(np.flatnonzero(cluster.nodes.live[: cluster.nodes.size]), within)
    placed: list[Pod] = []
    rejected: set[bytes] = set()
    try:
        for pod in sorted(pods, key=lambda pod: (-pod_priority(pod), _created(pod), pod.key)):
            spec = _spec_of(pod)
            if spec in rejected:
                continue
            info = world.remove_for_scheduling(pod)
            fits = _fits_on(world, info, within) and not _fits_on(world, info, others)
            world.add_pending(pod)
            if fits:
                cluster.assume(info.placed_on(_NEW), _NEW)
                placed.append(pod)
            else:
                rejected.add(spec)
    finally:
        for pod in placed:
            cluster.forget(pod.metadata.uid)
    return placed


def _fits_on(world: World, pod: PodInfo, rows: IntArray) -> bool:
    try:
        profile = world.profile_of(pod.pod)
        if QueueRules(profile).pre_enqueue(pod.pod, None) is not None:
            return False
        evaluation = Evaluation(profile, world.cluster, world.nominator, pod, rows)
        return evaluation.pre_filter() and len(evaluation.filter()) > 0
    except (ExplainError, PluginError, ValueError):
        return False

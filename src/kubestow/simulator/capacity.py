"""How many more pods fit into a cluster as it stands, what stops the next one, and what one more node would add.

Copies of the pods, or of a gang, are placed by the scheduler itself, without PostFilter: nobody is evicted for them.
When a pod cannot be placed, every node is asked why.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, PodGroupStatus
from kubestow.api.priority import pod_is_terminal
from kubestow.api.workloads import PriorityClass
from kubestow.config import Features, SchedulerConfiguration
from kubestow.config.configuration import Plugin, PluginSet
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.results import PluginError
from kubestow.simulator.copies import PodCopies, one_more
from kubestow.simulator.in_memory.harness import SchedulerHarness

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_FIRST_BATCH, _LARGEST_BATCH = 16, 1024
LIMIT_REACHED, UNSCHEDULABLE = "LimitReached", "Unschedulable"


class Refusal(NamedTuple):
    """Why some nodes of a kind do not take the next pod."""

    plugin: str
    kind: str
    reason: str
    nodes: int


@dataclass
class Capacity:
    """What was found."""

    replicas: int = 0
    unit: str = "pod"
    """What there may be more of: a `pod` or a `gang`."""
    on_nodes: dict[str, Counter[str]] = field(default_factory=dict)
    """For each pod of the mix: how many on which node."""
    fail_type: str = LIMIT_REACHED
    message: str = ""
    stopped: str = ""
    """The pod of the mix that could not be placed."""
    reasons: Counter[str] = field(default_factory=Counter)
    """On how many nodes each reason holds."""
    refusals: list[Refusal] = field(default_factory=list)
    one_more: dict[str, int] = field(default_factory=dict)
    """How many more pods would fit with one more node of each kind."""


def kind_of(node: Node) -> str:
    """What a node is of: its instance type, or what it has."""
    named = node.metadata.labels.get(INSTANCE_TYPE)
    if named:
        return named
    room = node.status.allocatable
    return f"{room.get('cpu', 0)} CPU, {room.get('memory', 0)}"


def scheduler(configuration: SchedulerConfiguration, plugins: Iterable[type], features: Features) -> SchedulerHarness:
    """One that makes no room: what it says of a pod is what filters say."""
    none = PluginSet(disabled=(Plugin("*"),))
    profiles = tuple(replace(one, plugins=replace(one.plugins, postFilter=none)) for one in configuration.profiles)
    return SchedulerHarness(replace(configuration, profiles=profiles), plugins=plugins, features=features)


def capacity(
    objects: Sequence[Any],
    pods: Sequence[Pod],
    limit: int,
    exclude: Iterable[str],
    make: Callable[[], SchedulerHarness],
    gang: PodGroup | None = None,
) -> Capacity:
    """Return how often the pods fit, each in its turn, or how often a gang of `minCount` copies of the only pod does.

    At most `limit` pods or gangs are tried, if it is not 0. `make` makes a scheduler.
    """
    pods = [replace(pod, spec=replace(pod.spec, nodeName="")) for pod in pods]
    with make() as harness:
        _restore(harness, objects, exclude)
        return _Filling(harness, PodCopies(harness.cluster, objects), pods, gang, limit).run()


def _restore(harness: SchedulerHarness, objects: Iterable[Any], exclude: Iterable[str]) -> None:
    """Let the scheduler see a cluster as it stands."""
    left_out = set(exclude)
    for obj in objects:
        if isinstance(obj, Node) and obj.metadata.name in left_out:
            continue
        if isinstance(obj, PriorityClass | ResourceClaimTemplate):
            # No scheduler watches them: pods have their priority already, and get their claims here.
            continue
        if isinstance(obj, Pod) and (pod_is_terminal(obj) or not obj.spec.nodeName):
            # Pods that wait already might take the room; the question is how much there is.
            continue
        harness.cluster.restore(obj)
    harness.run_until_idle()


def _run_through(harness: SchedulerHarness) -> None:
    """Run until every pod was tried; not until idle: those that cannot be placed would be tried again and again."""
    core, cluster = harness.core, harness.cluster
    harness.run_until(
        lambda: not (core.queue.has_work or len(core.scheduler.binder) or len(core.dispatcher) or cluster.is_busy)
    )


def _with_one_more(harness: SchedulerHarness) -> Iterator[str]:
    """The kinds of nodes; while each has its turn, there is one more of it."""
    cluster = harness.cluster
    kinds = {kind_of(node): node for node in reversed(cluster.all(Node)) if not node.spec.unschedulable}
    for kind, example in sorted(kinds.items()):
        with one_more(cluster, example):
            yield kind
        _run_through(harness)


def _why_not(harness: SchedulerHarness, pod: Pod) -> str:
    """What the scheduler says of a pod that it did not place."""
    scheduled = harness.cluster.conditions(pod.metadata.name, pod.metadata.namespace).get("PodScheduled")
    if scheduled is not None:
        return scheduled.message
    held = QueueRules(harness.core.profiles[pod.spec.schedulerName]).pre_enqueue(pod, None)
    return "it was not tried" if held is None else f"{held.message} ({held.plugin})"


class _Copy(NamedTuple):
    """What is placed as one: a pod, or a gang."""

    template: str
    pods: list[Pod]
    gang: PodGroup | None = None


class _Filling:
    """Places copies of pods, several at a time, until one does not fit."""

    def __init__(
        self, harness: SchedulerHarness, copies: PodCopies, pods: Sequence[Pod], gang: PodGroup | None, limit: int
    ) -> None:
        self._harness = harness
        self._copies = copies
        self._pods = pods
        self._gang = gang
        self._limit = limit
        self._first_batch, self._largest_batch = (_FIRST_BATCH, _LARGEST_BATCH) if gang is None else (1, 1)
        self._count = 0
        templates = [one.metadata.name for one in (pods if gang is None else [gang])]
        unit = "pod" if gang is None else "gang"
        self._found = Capacity(unit=unit, on_nodes={template: Counter() for template in templates})

    def run(self) -> Capacity:
        found, batch = self._found, self._first_batch
        while not self._limit or found.replicas < self._limit:
            copies = self._place(min(batch, self._limit - found.replicas) if self._limit else batch)
            fitting = self._fitting(copies)
            for copy in copies[:fitting]:
                found.replicas += 1
                found.on_nodes[copy.template].update(pod.spec.nodeName for pod in copy.pods)
            if fitting < len(copies):
                self._explain(copies[fitting])
                self._delete(copies[fitting:])
                self._try_one_more()
                return found
            batch = min(batch * 2, self._largest_batch)
        found.message = f"the limit of {self._limit} {found.unit}s is reached"
        return found

    def _place(self, count: int) -> list[_Copy]:
        """Try `count` copies; their pods are returned as they are then."""
        added = [self._add() for _ in range(count)]
        _run_through(self._harness)
        return [copy._replace(pods=[self._current(pod) for pod in copy.pods]) for copy in added]

    def _current(self, pod: Pod) -> Pod:
        return self._harness.cluster.pod(pod.metadata.name, pod.metadata.namespace)

    def _add(self) -> _Copy:
        """Add a copy of the gang, or of the pod of the mix whose turn it is."""
        number = self._count
        self._count += 1
        pod = self._pods[number % len(self._pods)]
        if self._gang is None:
            return _Copy(pod.metadata.name, [self._copies.add(pod, pod.metadata.name)])
        template = self._gang.metadata.name
        metadata = replace(self._gang.metadata, name=f"{template}-more-{number}", uid="", resourceVersion="")
        gang = self._harness.cluster.add(replace(self._gang, metadata=metadata, status=PodGroupStatus()))
        member = replace(pod.spec.schedulingGroup, podGroupName=metadata.name) if pod.spec.schedulingGroup else None
        pod = replace(pod, spec=replace(pod.spec, schedulingGroup=member))
        return _Copy(template, [self._copies.add(pod, metadata.name) for _ in range(gang.min_count)], gang)

    @staticmethod
    def _fitting(copies: list[_Copy]) -> int:
        """How many were placed before the first that was not; those after it do not count."""
        places = (all(pod.spec.nodeName for pod in copy.pods) for copy in copies)
        return next((index for index, is_placed in enumerate(places) if not is_placed), len(copies))

    def _delete(self, copies: list[_Copy]) -> None:
        for copy in copies:
            for pod in copy.pods:
                self._copies.delete(pod)
            if copy.gang is not None:
                self._harness.cluster.delete(copy.gang)
        _run_through(self._harness)

    def _explain(self, copy: _Copy) -> None:
        found = self._found
        found.fail_type, found.stopped = UNSCHEDULABLE, copy.template
        found.message = _why_not(self._harness, copy.pods[-1])
        if copy.gang is None:
            self._explain_nodes(copy.pods[-1])

    def _explain_nodes(self, pod: Pod) -> None:
        found, core = self._found, self._harness.core
        profile = core.profiles[pod.spec.schedulerName]
        evaluation = Evaluation(profile, core.cluster, core.queue.nominator, PodInfo(pod), None)
        nodes, counts = core.cluster.nodes, Counter[tuple[str, str, str]]()
        try:
            is_judged = nodes.count and evaluation.pre_filter()
            verdicts = evaluation.verdicts_on(evaluation.narrowed_rows()) if is_judged else None
        except PluginError:
            verdicts = None  # The scheduler has met it, too, and said so.
        if verdicts is None:
            found.reasons[found.message] += 1
            return
        for rejection, positions in verdicts.kinds():
            for row in verdicts.rows[positions]:
                node = nodes.nodes[int(row)]
                if node is not None:
                    for reason in rejection.reasons:
                        found.reasons[reason] += 1
                        counts[rejection.plugin, kind_of(node), reason] += 1
        found.refusals = [Refusal(*key, count) for key, count in sorted(counts.items())]

    def _try_one_more(self) -> None:
        """See how many copies a node more of each kind lets in."""
        for kind in _with_one_more(self._harness):
            copies: list[_Copy] = []
            while self._fitting(copies) == len(copies):
                copies += self._place(self._first_batch)
            self._found.one_more[kind] = self._fitting(copies)
            self._delete(copies)

"""Capacity of a cluster: how many more pods fit, what stops the next one, and what one more node would add.

The scheduler itself places copies of the pods, or of a gang, without PostFilter, so that no pod is evicted for them.
When a pod cannot be placed, the filters are evaluated on every node to find the reasons.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from kubestow.simulator.copies import PodCopies, extra_node
from kubestow.simulator.in_memory.harness import SchedulerHarness

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_FIRST_BATCH, _LARGEST_BATCH = 16, 1024
LIMIT_REACHED, UNSCHEDULABLE = "LimitReached", "Unschedulable"


class Refusal(NamedTuple):
    """The number of nodes of a kind that reject the next pod for a reason."""

    plugin: str
    kind: str
    reason: str
    nodes: int


@dataclass
class Capacity:
    """The result of a capacity search."""

    replicas: int = 0
    unit: str = "pod"
    """What is counted: `pod` or `gang`."""
    on_nodes: dict[str, Counter[str]] = field(default_factory=dict)
    """Number of copies on each node, for each pod of the mix."""
    fail_type: str = LIMIT_REACHED
    message: str = ""
    stopped: str = ""
    """Name of the pod of the mix that could not be placed."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Number of nodes for each reason."""
    refusals: list[Refusal] = field(default_factory=list)
    one_more: dict[str, int] = field(default_factory=dict)
    """Number of additional copies that would fit with one more node of each kind."""


def node_kind(node: Node) -> str:
    """Return the instance type of a node, or else its CPU and memory."""
    named = node.metadata.labels.get(INSTANCE_TYPE)
    if named:
        return named
    allocatable = node.status.allocatable
    return f"{allocatable.get('cpu', 0)} CPU, {allocatable.get('memory', 0)}"


def scheduler(
    configuration: SchedulerConfiguration, plugins: Iterable[type], features: Features, polled: Mapping[str, Any]
) -> SchedulerHarness:
    """Return a scheduler without PostFilter plugins, so that its messages are those of the filters.

    `polled` are values that plugins poll, by name.
    """
    none = PluginSet(disabled=(Plugin("*"),))
    profiles = tuple(
        replace(one, plugins=replace(one.plugins, postFilter=none, podGroupPostFilter=none))
        for one in configuration.profiles
    )
    configuration = replace(configuration, profiles=profiles)
    return SchedulerHarness(configuration, plugins=plugins, features=features, polled=polled)


def capacity(
    objects: Sequence[Any],
    pods: Sequence[Pod],
    limit: int,
    exclude: Iterable[str],
    make: Callable[[], SchedulerHarness],
    gang: PodGroup | None = None,
) -> Capacity:
    """Return how many copies of the pods fit, taken in turn, or how many gangs of `minCount` copies of the only pod.

    Stops at `limit` pods or gangs, unless it is 0. `make` returns a new scheduler.
    """
    pods = [replace(pod, spec=replace(pod.spec, nodeName="")) for pod in pods]
    with make() as harness:
        _restore(harness, objects, exclude)
        return _CapacitySearch(harness, PodCopies(harness.cluster, objects), pods, gang, limit).run()


def _restore(harness: SchedulerHarness, objects: Iterable[Any], exclude: Iterable[str]) -> None:
    """Add the nodes, bound pods and other objects of a cluster, and let the scheduler receive them."""
    excluded = set(exclude)
    for obj in objects:
        if isinstance(obj, Node) and obj.metadata.name in excluded:
            continue
        if isinstance(obj, PriorityClass | ResourceClaimTemplate):
            # The scheduler watches neither: pods already have their priority, and their claims are created here.
            continue
        if isinstance(obj, Pod) and (pod_is_terminal(obj) or not obj.spec.nodeName):
            # Pending pods could use capacity that is to be measured.
            continue
        harness.cluster.restore(obj)
    harness.run_until_idle()


def _run_until_attempted(harness: SchedulerHarness) -> None:
    """Run until every pod was attempted. Not until idle: unschedulable pods would be retried again and again."""
    core, cluster = harness.core, harness.cluster
    harness.run_until(
        lambda: not (core.queue.has_work or len(core.scheduler.binder) or len(core.dispatcher) or cluster.is_busy)
    )


def _extra_nodes(harness: SchedulerHarness) -> Iterator[str]:
    """Yield each kind of node, while the cluster has one more node of that kind."""
    cluster = harness.cluster
    kinds = {node_kind(node): node for node in reversed(cluster.all(Node)) if not node.spec.unschedulable}
    for kind, example in sorted(kinds.items()):
        with extra_node(cluster, example):
            yield kind
        _run_until_attempted(harness)


def _failure_message(harness: SchedulerHarness, pod: Pod) -> str:
    """Return the scheduler's message for a pod that it did not place."""
    scheduled = harness.cluster.conditions(pod.metadata.name, pod.metadata.namespace).get("PodScheduled")
    if scheduled is not None:
        return scheduled.message
    held = QueueRules(harness.core.profiles[pod.spec.schedulerName]).pre_enqueue(pod, None)
    return "it was not tried" if held is None else f"{held.message} ({held.plugin})"


class _Copy(NamedTuple):
    """A unit of placement: a pod or a gang."""

    template: str
    pods: list[Pod]
    gang: PodGroup | None = None


class _CapacitySearch:
    """Places copies of pods in batches until one does not fit."""

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
            fitting = self._count_placed(copies)
            for copy in copies[:fitting]:
                found.replicas += 1
                found.on_nodes[copy.template].update(pod.spec.nodeName for pod in copy.pods)
            if fitting < len(copies):
                self._explain(copies[fitting])
                self._delete(copies[fitting:])
                self._measure_extra_nodes()
                return found
            batch = min(batch * 2, self._largest_batch)
        found.message = f"the limit of {self._limit} {found.unit}s is reached"
        return found

    def _place(self, count: int) -> list[_Copy]:
        """Attempt `count` copies; return them with the resulting state of their pods."""
        added = [self._add() for _ in range(count)]
        _run_until_attempted(self._harness)
        return [copy._replace(pods=[self._current(pod) for pod in copy.pods]) for copy in added]

    def _current(self, pod: Pod) -> Pod:
        return self._harness.cluster.pod(pod.metadata.name, pod.metadata.namespace)

    def _add(self) -> _Copy:
        """Add a copy of the gang, or of the next pod of the mix."""
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
    def _count_placed(copies: list[_Copy]) -> int:
        """Return the number of copies placed before the first failure; later ones do not count."""
        places = (all(pod.spec.nodeName for pod in copy.pods) for copy in copies)
        return next((index for index, is_placed in enumerate(places) if not is_placed), len(copies))

    def _delete(self, copies: list[_Copy]) -> None:
        for copy in copies:
            for pod in copy.pods:
                self._copies.delete(pod)
            if copy.gang is not None:
                self._harness.cluster.delete(copy.gang)
        _run_until_attempted(self._harness)

    def _explain(self, copy: _Copy) -> None:
        found = self._found
        found.fail_type, found.stopped = UNSCHEDULABLE, copy.template
        found.message = _failure_message(self._harness, copy.pods[-1])
        if copy.gang is None:
            self._explain_nodes(copy.pods[-1])

    def _explain_nodes(self, pod: Pod) -> None:
        found, core = self._found, self._harness.core
        profile = core.profiles[pod.spec.schedulerName]
        evaluation = Evaluation(profile, core.cluster, core.queue.nominator, PodInfo(pod), None)
        nodes, counts = core.cluster.nodes, Counter[tuple[str, str, str]]()
        try:
            has_verdicts = nodes.count and evaluation.pre_filter()
            verdicts = evaluation.verdicts_on(evaluation.narrowed_rows()) if has_verdicts else None
        except PluginError:
            verdicts = None  # The scheduler failed the same way; its message is used.
        if verdicts is None:
            found.reasons[found.message] += 1
            return
        for rejection, positions in verdicts.kinds():
            for row in verdicts.rows[positions]:
                node = nodes.nodes[int(row)]
                if node is not None:
                    for reason in rejection.reasons:
                        found.reasons[reason] += 1
                        counts[rejection.plugin, node_kind(node), reason] += 1
        found.refusals = [Refusal(*key, count) for key, count in sorted(counts.items())]

    def _measure_extra_nodes(self) -> None:
        """Count the copies that fit with one more node of each kind."""
        for kind in _extra_nodes(self._harness):
            copies: list[_Copy] = []
            while self._count_placed(copies) == len(copies):
                copies += self._place(self._first_batch)
            self._found.one_more[kind] = self._count_placed(copies)
            self._delete(copies)

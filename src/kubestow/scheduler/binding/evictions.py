"""Carries out preemptions: deletes the victims with a status condition, and clears lower nominations to the node.

Each preemption is a task of its own beside later cycles. The preemptor is gated until its last victim is being
deleted, so that it is not retried while no capacity can have become free.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from kubestow.api.conditions import disruption_target
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import AnyGroup
from kubestow.scheduler.binding.dispatcher import ERROR, SUCCESS, Dispatcher
from kubestow.scheduler.binding.waiting import WaitingPods
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.handle import Recorder
from kubestow.scheduler.queue.queued_group import entity_uid
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Preemption(NamedTuple):
    """The preemptor, and the node that is made available to it."""

    uid: str
    """UID of the preemptor, which is a pod or a pod group."""
    kind: str
    """`pod`, `podgroup` or `compositepodgroup`."""
    pods: Sequence[PodInfo]
    """The pod, or the pods of the group."""
    place: str
    """The node, or `cluster`."""
    plugin: str
    """The plugin that chose the victims."""
    queued_as: str
    """What identifies the preemptor in the queue."""

    @classmethod
    def for_pod(cls, pod: PodInfo, node: str, plugin: str) -> "Preemption":
        """Return the preemption by a pod on a node."""
        return cls(pod.uid, "pod", (pod,), node, plugin, pod.uid)

    @classmethod
    def for_group(cls, group: AnyGroup, pods: Sequence[PodInfo], plugin: str) -> "Preemption":
        """Return the preemption by a pod group, or a tree of groups, on any nodes."""
        return cls(group.metadata.uid, type(group).__name__.lower(), pods, "cluster", plugin, entity_uid(group.key))


class Evictions:
    """The running preemptions."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        dispatcher: Dispatcher,
        waiting: WaitingPods,
        cancel_pre_bind: Callable[[str, str], bool],
        recorder: Recorder,
        activate: Callable[[Iterable[Pod]], None],
        wait_only_for: Callable[[str, str | None], None],
        now: Callable[[], float],
        metrics: SchedulerMetrics,
    ) -> None:
        self._cluster = cluster
        self._dispatcher = dispatcher
        self._waiting = waiting
        self._cancel_pre_bind = cancel_pre_bind
        self._recorder = recorder
        self._activate = activate
        self._wait_only_for = wait_only_for
        self._now = now
        self._metrics = metrics
        self._preempting: dict[str, str | None] = {}
        """UIDs of preemptors, with the UID of the last victim once the others are evicted; None before."""
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def is_preempting(self, uid: str) -> bool:
        """Return whether victims of a pod are still to be deleted."""
        if uid not in self._preempting:
            return False
        last = self._preempting[uid]
        if last is None:
            return True
        victim = self._cluster.pod(last)
        return victim is not None and not victim.terminating

    def start(self, preemption: Preemption, victims: Collection[PodInfo], to_unnominate: Iterable[PodInfo]) -> None:
        """Start to evict victims and to clear nominations; do nothing if all victims are terminating."""
        metrics = self._metrics
        observed = metrics.preemption_victims if preemption.kind == "pod" else metrics.workload_preemption_victims
        observed.observe(len(victims))
        to_evict = [victim for victim in victims if not victim.terminating]
        if not to_evict:
            return
        for pod in to_unnominate:
            if self._dispatcher.expected(pod.pod).status.nominatedNodeName:
                self._dispatcher.patch_status(pod.pod, nominated_node="")
        self._preempting[preemption.uid] = None
        # Other preemptions may run at the same time: events about their victims must not retry this preemptor.
        self._wait_only_for(preemption.queued_as, to_evict[-1].uid)
        task = asyncio.get_running_loop().create_task(self._run(preemption, to_evict))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, preemption: Preemption, victims: list[PodInfo]) -> None:
        time, result = asyncio.get_running_loop().time, SUCCESS
        started = time()
        try:
            retry_event_follows = await self._evict_all(preemption, victims)
        except Exception as error:
            pod = preemption.pods[0].pod.key
            log.error("Preemption failed; retrying the preemptor", err=error, kind=preemption.kind, pod=pod)
            retry_event_follows, result = False, ERROR
        self._metrics.preemption_goroutines.inc(result)
        seconds = time() - started
        self._metrics.preemption_goroutine_seconds.observe(seconds, result)
        self._metrics.preemption_execution_seconds.observe(seconds, preemption.kind, result)
        self._preempting.pop(preemption.uid, None)
        if not (retry_event_follows and _is_deleted_at_once(victims[-1].pod)):
            self._wait_only_for(preemption.queued_as, None)
        if not retry_event_follows:
            self._activate([one.pod for one in preemption.pods])

    async def _evict_all(self, preemption: Preemption, victims: list[PodInfo]) -> bool:
        """Evict the victims, the last one after the others: its deletion is the event that retries the preemptor.

        Return False if the last victim was gone already, in which case the event came while the preemptor was gated.
        """
        *others, last = victims
        if others:
            evictions = [self._evict(preemption, victim) for victim in others]
            for failure in await asyncio.gather(*evictions, return_exceptions=True):
                if isinstance(failure, BaseException):
                    raise failure
        self._preempting[preemption.uid] = last.uid
        is_there = self._cluster.pod(last.uid) is not None
        return await self._evict(preemption, last) and is_there

    async def _evict(self, preemption: Preemption, victim: PodInfo) -> bool:
        """Evict one victim; return False if it was gone already."""
        uid, kind, (preemptor, *_), place, plugin, _ = preemption
        note = f"Preempted by {kind} {uid} on node {place}"
        waiting = self._waiting.get(victim.uid)
        if waiting is not None:
            in_memory = waiting.preempt(plugin, "preempted")
        else:
            in_memory = self._cancel_pre_bind(victim.uid, f"preempted by {plugin}")
        if in_memory:
            note += " (in kube-scheduler memory)."
        else:
            condition = disruption_target(victim.pod, preemptor.pod.spec.schedulerName, self._now(), beneficiary=kind)
            if not await self._dispatcher.evict(victim.pod, condition):
                return False
        self._recorder.event(victim.pod, "Normal", "Preempted", "Preempting", note, related=preemptor.pod)
        return True

    async def drain(self) -> None:
        """Wait until all running preemptions have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _is_deleted_at_once(pod: Pod) -> bool:
    """Return whether the deletion of a pod takes effect at once, so that a retry can wait for its event."""
    return pod.spec.terminationGracePeriodSeconds == 0 and not pod.metadata.finalizers

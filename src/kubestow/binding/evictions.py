"""Carrying out a preemption: victims are told why and deleted; lower nominations to the node are cleared.

Runs beside later cycles. The preemptor is held back until its last victim is on its way, so that it is not tried again
before there can be room.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from kubestow.binding.dispatcher import ERROR, SUCCESS, Dispatcher
from kubestow.binding.waiting import WaitingPods
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.framework.handle import Recorder
from kubestow.model.pod import Pod
from kubestow.reporting.conditions import disruption_target
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Preemption(NamedTuple):
    """Who makes room for which pods, and where."""

    uid: str
    """Of the pod or the pod group that is made room for."""
    kind: str
    """`pod` or `podgroup`."""
    pods: Sequence[PodInfo]
    """The pod, or the pods of the group."""
    place: str
    """The node, or `cluster`."""
    plugin: str


def for_pod(pod: PodInfo, node: str, plugin: str) -> Preemption:
    """Room for one pod on a node."""
    return Preemption(pod.uid, "pod", (pod,), node, plugin)


def for_group(uid: str, pods: Sequence[PodInfo], plugin: str) -> Preemption:
    """Room for a group of pods, wherever that is."""
    return Preemption(uid, "podgroup", pods, "cluster", plugin)


class PreBinding(Protocol):
    """Pods whose PreBind runs."""

    def cancel_pre_bind(self, uid: str, message: str) -> bool: ...


class Evictions:
    """Preemptions under way."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        dispatcher: Dispatcher,
        waiting: WaitingPods,
        pre_binding: PreBinding,
        recorder: Recorder,
        activate: Callable[[Iterable[Pod]], None],
        wait_only_for: Callable[[str, str | None], None],
        now: Callable[[], float],
        metrics: SchedulerMetrics,
    ) -> None:
        self._cluster = cluster
        self._dispatcher = dispatcher
        self._waiting = waiting
        self._pre_binding = pre_binding
        self._recorder = recorder
        self._activate = activate
        self._wait_only_for = wait_only_for
        self._now = now
        self._metrics = metrics
        self._preempting: dict[str, str | None] = {}
        """Uids of preemptors, with the uid of their last victim once it is its turn."""
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def is_preempting(self, uid: str) -> bool:
        """Whether victims of a pod are still to be evicted."""
        if uid not in self._preempting:
            return False
        last = self._preempting[uid]
        if last is None:
            return True
        victim = self._cluster.pod(last)
        return victim is not None and not victim.terminating

    def start(self, preemption: Preemption, victims: Collection[PodInfo], to_unnominate: Iterable[PodInfo]) -> None:
        """Evict victims; where all are on their way out already, nothing is done, nor taken from other pods."""
        to_evict = [victim for victim in victims if not victim.terminating]
        if not to_evict:
            return
        self._metrics.preemption_victims.observe(len(victims))
        for pod in to_unnominate:
            if self._dispatcher.expected(pod.pod).status.nominatedNodeName:
                self._dispatcher.patch_status(pod.pod, nominated_node="")
        self._preempting[preemption.uid] = None
        # Many may preempt at a time: what happens to the victims of one is nothing to the others.
        for pod in preemption.pods:
            self._wait_only_for(pod.uid, to_evict[-1].uid)
        task = asyncio.get_running_loop().create_task(self._run(preemption, to_evict))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, preemption: Preemption, victims: list[PodInfo]) -> None:
        time, result = asyncio.get_running_loop().time, SUCCESS
        started = time()
        try:
            waking_event_follows = await self._evict_all(preemption, victims)
        except Exception as error:
            pod = preemption.pods[0].pod.key
            log.error(
                "Preemption failed; what it was for will be tried again", err=error, kind=preemption.kind, pod=pod
            )
            waking_event_follows, result = False, ERROR
        self._metrics.preemption_goroutines.inc(result)
        self._metrics.preemption_goroutine_seconds.observe(time() - started, result)
        self._preempting.pop(preemption.uid, None)
        if not (waking_event_follows and _goes_at_once(victims[-1].pod)):
            for one in preemption.pods:
                self._wait_only_for(one.uid, None)
        if not waking_event_follows:
            self._activate([one.pod for one in preemption.pods])

    async def _evict_all(self, preemption: Preemption, victims: list[PodInfo]) -> bool:
        """Evict the victims, the last one after the others: its deletion is what lets the preemptor try again.

        False if it was gone already, or had run to its end: what this would have woken was still held back then.
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
        """False if the victim was gone already."""
        uid, kind, (speaker, *_), place, plugin = preemption
        note = f"Preempted by {kind} {uid} on node {place}"
        waiting = self._waiting.get(victim.uid)
        if waiting is not None:
            in_memory = waiting.preempt(plugin, "preempted")
        else:
            in_memory = self._pre_binding.cancel_pre_bind(victim.uid, f"preempted by {plugin}")
        if in_memory:
            note += " (in kube-scheduler memory)."
        else:
            condition = disruption_target(victim.pod, speaker.pod.spec.schedulerName, self._now(), beneficiary=kind)
            if not await self._dispatcher.evict(victim.pod, condition):
                return False
        self._recorder.event(victim.pod, "Normal", "Preempted", "Preempting", note, related=speaker.pod)
        return True

    async def drain(self) -> None:
        """Wait until every preemption under way is over."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def _goes_at_once(pod: Pod) -> bool:
    """Whether a pod that is deleted will be gone in a moment: then there is nothing to try before that is seen."""
    return pod.spec.terminationGracePeriodSeconds == 0 and not pod.metadata.finalizers

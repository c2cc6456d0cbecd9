"""Pods that Permit delays until all delaying plugins allow them, one rejects them, or the timeout expires."""

import asyncio
from collections.abc import Iterator

from kubestow.config.durations import Duration
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import Code, Rejection


class WaitingPod:
    """A pod that waits for permission; plugins get it from their handle."""

    def __init__(self, pod: PodInfo, node: str, waits: dict[str, float]) -> None:
        loop = asyncio.get_running_loop()
        self.pod = pod
        self.node = node
        self._answer: asyncio.Future[Rejection | None] = loop.create_future()
        self._timers = {
            plugin: loop.call_later(seconds, self._time_out, plugin, seconds) for plugin, seconds in waits.items()
        }

    def pending_plugins(self) -> list[str]:
        """Return the plugins that have not allowed the pod yet."""
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        """Give the permission of one plugin; the last permission ends the wait."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._settle(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod, which goes back to the queue; return False if it no longer waits."""
        return self._settle(Rejection((message,), Code.UNSCHEDULABLE, plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Reject the pod in favor of one with higher priority; return False if it no longer waits."""
        return self._settle(Rejection((f"waiting on permit for pod: {message}",), Code.ERROR, plugin))

    def _time_out(self, plugin: str, seconds: float) -> None:
        waited = Duration(round(seconds * 1e9))
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _settle(self, answer: Rejection | None) -> bool:
        if self._answer.done():
            return False
        for timer in self._timers.values():
            timer.cancel()
        self._answer.set_result(answer)
        return True

    async def answer(self) -> Rejection | None:
        """Wait for the result: None if all plugins allowed the pod, else the rejection."""
        return await self._answer


class WaitingPods:
    """The pods that wait for permission, by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def add(self, pod: PodInfo, node: str, waits: dict[str, float]) -> WaitingPod:
        waiting = self._pods[pod.uid] = WaitingPod(pod, node, waits)
        return waiting

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def reject(self, uid: str, message: str) -> bool:
        """Reject a pod in the name of no plugin; return False if it does not wait."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", message)

"""Conformance of kind `trace`: a scheduler core driven step by step on a fake clock; compares decisions and queues."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

import msgspec

from conformance_kinds._inputs import configuration_of, object_of
from kubestow import config
from kubestow.api.pod import Pod
from kubestow.api.timestamps import format_time
from kubestow.scheduler.assembly import Outside, build_core
from kubestow.scheduler.binding.binder import Attempt, BindingListener
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cycle.outcome import NO_NODES, Failed, Outcome, Placed
from kubestow.scheduler.framework.detached import FirstRng, ListRecorder
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.observer import Observer
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_START = 1_767_225_600
_FLUSH_EVERY = 30


def check(case: dict[str, Any]) -> str | None:
    """Return the first step that differs from the recorded one, None if there is none."""
    return asyncio.run(_check(case))


async def _check(case: dict[str, Any]) -> str | None:
    trace = Trace(case)
    for number, (op, expected) in enumerate(zip(case["ops"], case["expect"], strict=True)):
        found = trace.step(op)
        if found != expected:
            return f"step {number} ({op['op']}): {found}, expected {expected}"
    return None


class NanoClock:
    """Counts whole nanoseconds, so that thousands of small steps add up exactly."""

    def __init__(self) -> None:
        self.nanoseconds = _START * 10**9

    def advance(self, seconds: float) -> None:
        self.nanoseconds += round(seconds * 10**9)

    def now(self) -> float:
        return self.nanoseconds / 10**9


class NoOpApi:
    """Accepts and ignores every write: the recorded core was not connected to an API server."""

    def __getattr__(self, _name: str) -> Callable[..., Awaitable[None]]:
        async def accept(*_args: object, **_kwargs: object) -> None:
            pass

        return accept


class Binder:
    """Binds on request of the trace."""

    def __init__(self) -> None:
        self.assumed: dict[str, tuple[Attempt, Placed]] = {}

    def start(self, attempt: Attempt, placed: Placed, listener: BindingListener) -> None:
        del listener
        self.assumed[placed.pod.key] = (attempt, placed)

    def cancel_pre_bind(self, uid: str, message: str) -> bool:
        del uid, message
        return False


class LastDecision(Observer):
    """Keeps the last decision."""

    last: tuple[Pod, Outcome]

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        del seconds
        self.last = (attempt.queued.pod, outcome)


class Trace:
    """The scheduler core, and the objects of an API server."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._clock = NanoClock()
        self._last_decision = LastDecision()
        outside = Outside(
            clock=self._clock,
            stopwatch=lambda: 0.0,
            rng=FirstRng(),
            api=NoOpApi(),  # type: ignore[arg-type]
            recorder=ListRecorder(),
            metrics=SchedulerMetrics(),
            observer=self._last_decision,
        )
        self._binder = Binder()
        with patch("kubestow.scheduler.assembly.Binder", return_value=self._binder):
            self._core = build_core(
                configuration_of(case), config.Features(), in_tree_registry(), outside, choose=self._first_by_name
            )
        for profile in self._core.profiles.values():
            # The recorded core reported the fit error without the result of PostFilter.
            profile.post_filter = ()
        self._objects: dict[tuple[str, str], Any] = {}
        self._order: list[str] = []
        """Pods in the order of their first assumption since the last `bind`."""
        self._since_flush = 0.0
        for manifest in case["objects"]:
            self._apply(manifest)

    def _first_by_name(self, best: IntArray) -> int:
        names = self._core.cluster.nodes.names
        return min((int(row) for row in best), key=lambda row: names[row])

    def step(self, op: dict[str, Any]) -> dict[str, Any]:
        self._clock.advance(0.001)
        result: dict[str, Any] = getattr(self, f"_{op['op']}")(op) or {}
        result["queue"] = {name: sorted(pod.key for pod in pods) for name, pods in self._core.queue.snapshot().items()}
        return result

    def _apply(self, op: dict[str, Any]) -> None:
        obj = object_of(op.get("object", op))
        key = (type(obj).__name__, key_of(obj))
        old = self._objects.get(key)
        if isinstance(obj, Pod):
            obj = self._completed(obj, old)
        self._objects[key] = obj
        if old is None:
            self._core.intake.added(obj)
        else:
            self._core.intake.updated(old, obj)

    def _completed(self, pod: Pod, old: Pod | None) -> Pod:
        replace = msgspec.structs.replace
        if pod.metadata.creationTimestamp is None:
            pod = replace(pod, metadata=replace(pod.metadata, creationTimestamp=format_time(self._clock.now())))
        if old is not None and old.spec.nodeName:
            pod = replace(pod, spec=replace(pod.spec, nodeName=old.spec.nodeName))
        return pod

    def _deletePod(self, op: dict[str, Any]) -> None:  # noqa: N802 - named as in the recording
        pod = self._objects.pop(("Pod", op["pod"]), None)
        if pod is not None:
            self._core.intake.deleted(pod)
            if self._binder.assumed.pop(pod.key, None) is not None:
                self._core.queue.done(pod.metadata.uid)

    def _deleteNode(self, op: dict[str, Any]) -> None:  # noqa: N802 - named as in the recording
        node = self._objects.pop(("Node", op["node"]), None)
        if node is not None:
            self._core.intake.deleted(node)

    def _schedule(self, _op: dict[str, Any]) -> dict[str, Any]:
        if not self._core.scheduler.schedule_one():
            return {"noop": True}
        pod, outcome = self._last_decision.last
        result: dict[str, Any] = {"popped": pod.key}
        if isinstance(outcome, Placed):
            result["chosen"] = outcome.node
            if pod.key not in self._order:
                self._order.append(pod.key)
        elif outcome.message == NO_NODES:
            result["error"] = outcome.message
        else:
            result |= {"message": outcome.message, "unschedulablePlugins": sorted(outcome.plugins)}
        return result

    def _bind(self, _op: dict[str, Any]) -> dict[str, Any]:
        bound = []
        for key in self._order:
            attempt = self._binder.assumed.pop(key, None)
            if attempt is None:
                continue
            pod = self._objects["Pod", key]
            replace = msgspec.structs.replace
            running = replace(
                pod,
                spec=replace(pod.spec, nodeName=attempt[1].node),
                status=replace(pod.status, phase="Running"),
            )
            self._objects["Pod", key] = running
            self._core.intake.updated(pod, running)
            bound.append(key)
        self._order.clear()
        return {"bound": bound} if bound else {"noop": True}

    def _bindFail(self, _op: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - named as in the recording
        key = next((key for key in self._order if key in self._binder.assumed), None)
        if key is None:
            return {"noop": True}
        attempt, placed = self._binder.assumed.pop(key)
        self._core.scheduler.attempts.on_binding_failed(attempt, placed, Failed(Code.ERROR, "binding failed"))
        return {"popped": key}

    def _advance(self, op: dict[str, Any]) -> None:
        self._clock.advance(op["seconds"])
        self._since_flush += op["seconds"]
        self._core.queue.flush_backoff()
        if self._since_flush >= _FLUSH_EVERY:
            self._since_flush = 0.0
            self._core.queue.flush_unschedulable()

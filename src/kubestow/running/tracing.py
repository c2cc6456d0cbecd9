"""Spans for OpenTelemetry: where one pod's time went, from the decision to the API server.

    schedulingCycle       with the pod, the profile, the attempt and what came of it
      PreFilter, Filter…  each extension point that ran; on request each plugin below it, its calls added up
      bindingCycle        beside later cycles
        PreBind, Bind     each step, by plugin
          POST …/binding  each request, which carries the context on to the API server (traceparent)

It is an observer like the recorder of decisions, before which it stands, and listens to two instruments that are fed
anyway. Nothing here is imported, and nothing listens, unless tracing is on; what is not sampled costs a random number.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from opentelemetry import trace as otel
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

from kubestow.binding.binder import Attempt, Step
from kubestow.client.api import JSON, ApiClient
from kubestow.client.connection import Response
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.cycle.trace import Alike, Trace
from kubestow.framework.placements import TriedGroup
from kubestow.model.failures import CallError
from kubestow.queue.queued_pod import QueuedPod
from kubestow.reporting.build import KUBERNETES
from kubestow.reporting.metrics.instruments import Histogram
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.running.tracing_options import TracingOptions
from kubestow.scheduler import Observer

_CLOSING_SECONDS = 5.0
_BINDING_POINTS = frozenset(("PreBind", "Bind", "PostBind"))
"""They run beside cycles; the steps of bindings tell about them."""
_MILLION = 1_000_000

_current: ContextVar[Any] = ContextVar("span", default=None)
"""The span that requests of this task belong to."""


class _Noted(NamedTuple):
    """A point, or all calls of a plugin at one, that has ended."""

    name: str
    plugin: str
    status: str
    start: float
    seconds: float


class Tracing:
    """Makes spans of what it is told, and passes it on."""

    placed_alike = None
    """The task that binds a pod inherits what is made when the pod is decided."""

    def __init__(self, options: TracingOptions, recorder: Observer | None, metrics: SchedulerMetrics) -> None:
        resource = Resource.create({"service.name": "kube-scheduler", "service.version": KUBERNETES})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=options.endpoint, insecure=True)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("kubestow")
        self._ratio = options.per_million / _MILLION
        self._recorder = recorder
        self._random = random.Random().random
        self._stopwatch: Callable[[], float] = time.perf_counter
        self._is_pending: Callable[[str], bool] = _never
        self._is_group_pending: Callable[[str], bool] = _never
        self._journal_bytes: Callable[[], int] = lambda: 0
        self._offset = 0.0
        self._noted: list[_Noted] = []
        self._bindings: dict[str, Any] = {}
        _listen(metrics.extension_point_seconds, self._point_ended)
        if options.plugins:
            _listen(metrics.plugin_execution_seconds, self._plugin_ended)

    @property
    def is_pending(self) -> Callable[[str], bool]:
        return self._is_pending

    @is_pending.setter
    def is_pending(self, told: Callable[[str], bool]) -> None:
        self._is_pending = told
        if self._recorder is not None:
            self._recorder.is_pending = told

    @property
    def is_group_pending(self) -> Callable[[str], bool]:
        return self._is_group_pending

    @is_group_pending.setter
    def is_group_pending(self, told: Callable[[str], bool]) -> None:
        self._is_group_pending = told
        if self._recorder is not None:
            self._recorder.is_group_pending = told

    @property
    def journal_bytes(self) -> Callable[[], int]:
        return self._journal_bytes

    @journal_bytes.setter
    def journal_bytes(self, told: Callable[[], int]) -> None:
        self._journal_bytes = told
        if self._recorder is not None:
            self._recorder.journal_bytes = told

    @property
    def stopwatch(self) -> Callable[[], float]:
        return self._stopwatch

    @stopwatch.setter
    def stopwatch(self, told: Callable[[], float]) -> None:
        self._stopwatch = told
        self._offset = time.time() - told()
        if self._recorder is not None:
            self._recorder.stopwatch = told

    def moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        if self._recorder is not None:
            self._recorder.moved(queued, queue, event, plugin)

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float, trace: Trace | Alike | None) -> None:
        if self._recorder is not None:
            self._recorder.decided(attempt, outcome, seconds, trace)
        noted, self._noted = self._noted, []
        if self._random() >= self._ratio:
            _current.set(None)
            return
        start, pod, placed = attempt.started, attempt.queued.pod, isinstance(outcome, Placed)
        about = {
            "k8s.namespace.name": pod.metadata.namespace,
            "k8s.pod.name": pod.metadata.name,
            "k8s.pod.uid": pod.metadata.uid,
        }
        said = {"profile": attempt.profile.name, "attempt": attempt.queued.attempts}
        cycle = self._span("schedulingCycle", None, start, about | said)
        for name, plugin, status, began, took in noted:
            if began >= start:
                named = {"plugin": plugin} if plugin else {}
                child = self._span(f"{name} {plugin}".rstrip(), cycle, began, {"status": status, **named})
                child.end(self._nanoseconds(began + took))
        if isinstance(outcome, Placed):
            cycle.set_attribute("k8s.node.name", outcome.node)
        else:
            cycle.set_status(Status(StatusCode.ERROR, outcome.message))
        end = start + seconds
        cycle.end(self._nanoseconds(end))
        if placed:
            self._bindings[attempt.queued.uid] = self._span("bindingCycle", cycle, end, about)
        # The task that binds is begun right after this, and inherits it.
        _current.set(self._bindings.get(attempt.queued.uid, cycle))

    def group_decided(
        self, tried: TriedGroup, profile: str, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        if self._recorder is not None:
            self._recorder.group_decided(tried, profile, outcome, scheduled, seconds)
        self._noted.clear()
        if self._random() < self._ratio:
            end = self._stopwatch()
            about = {"k8s.namespace.name": tried.namespace, "podGroup": tried.name, "profile": profile}
            span = self._span("podGroupCycle", None, end - seconds, about | {"pods": len(tried.pods)})
            span.end(self._nanoseconds(end))

    def step(self, placed: Placed, step: Step) -> None:
        if self._recorder is not None:
            self._recorder.step(placed, step)
        binding = self._bindings.get(placed.pod.uid)
        if binding is not None:
            name, plugin, start, end, is_bound = step
            self._span(f"{name} {plugin}".rstrip(), binding, start, {}).end(self._nanoseconds(end))
            if is_bound:
                self._end(placed, binding)

    def binding_failed(self, placed: Placed, failed: Failed) -> None:
        if self._recorder is not None:
            self._recorder.binding_failed(placed, failed)
        binding = self._bindings.get(placed.pod.uid)
        if binding is not None:
            binding.set_status(Status(StatusCode.ERROR, failed.message))
            self._end(placed, binding)

    def _end(self, placed: Placed, binding: Any) -> None:
        del self._bindings[placed.pod.uid]
        binding.end()

    def traced(self, channel: Any, **settings: Any) -> "TracedClient":
        """A client whose requests are spans."""
        client = TracedClient(channel, **settings)
        client.tracer = self._tracer
        return client

    async def close(self) -> None:
        """Send what is left, as far as it can be sent soon."""
        flushing = asyncio.to_thread(self._provider.force_flush, int(_CLOSING_SECONDS * 1000))
        await asyncio.wait({asyncio.ensure_future(flushing)}, timeout=_CLOSING_SECONDS)
        await asyncio.to_thread(self._provider.shutdown)

    def _point_ended(self, seconds: float, point: str, _: str, status: str) -> None:
        if point not in _BINDING_POINTS:
            self._noted.append(_Noted(point, "", status, self._stopwatch() - seconds, seconds))

    def _plugin_ended(self, seconds: float, point: str, plugin: str, status: str) -> None:
        if point in _BINDING_POINTS:
            return
        last = self._noted[-1] if self._noted else None
        if last is not None and (last.name, last.plugin) == (point, plugin):
            # Of one call for each node, the sum is told.
            self._noted[-1] = last._replace(seconds=last.seconds + seconds, status=status)
        else:
            self._noted.append(_Noted(point, plugin, status, self._stopwatch() - seconds, seconds))

    def _span(self, name: str, parent: Any, start: float, attributes: dict[str, Any]) -> Any:
        context = otel.set_span_in_context(parent or otel.INVALID_SPAN)
        return self._tracer.start_span(name, context, start_time=self._nanoseconds(start), attributes=attributes)

    def _nanoseconds(self, moment: float) -> int:
        return int((moment + self._offset) * 1e9)


class TracedClient(ApiClient):
    """Makes a span of every request that belongs to one, and tells the server about it."""

    tracer: Any

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = JSON,
        seconds: float | None = None,
        accept: str = JSON,
    ) -> Response:
        parent = _current.get()
        if parent is None:
            return await super().request(method, path, body, content_type, seconds, accept)
        plain = path.partition("?")[0]
        attributes = {"http.request.method": method, "url.path": plain}
        context = otel.set_span_in_context(parent)
        with self.tracer.start_as_current_span(
            f"{method} {plain}",
            context,
            SpanKind.CLIENT,
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            before = _current.set(span)
            try:
                response = await super().request(method, path, body, content_type, seconds, accept)
            except CallError as error:
                span.set_status(Status(StatusCode.ERROR, str(error)))
                raise
            finally:
                _current.reset(before)
            span.set_attribute("http.response.status_code", response.status)
            return response

    def _message(self, method: str, path: str, auth: bytes, body: bytes, content_type: str) -> bytes:
        span = _current.get()
        if span is not None:
            context = span.get_span_context()
            auth += f"traceparent: 00-{context.trace_id:032x}-{context.span_id:016x}-01\r\n".encode()
        return super()._message(method, path, auth, body, content_type)


def _never(_: str) -> bool:
    return False


def _listen(instrument: Histogram, ended: Callable[..., None]) -> None:
    """Be told what an instrument is told: one function is swapped, and nothing else knows."""
    observe = instrument.observe

    def tell(value: float, *key: str) -> None:
        observe(value, *key)
        ended(value, *key)

    instrument.observe = tell  # type: ignore[method-assign]

"""Spans for OpenTelemetry: the time of each pod, from the decision to the API server.

    schedulingCycle       with the pod, the profile, the attempt and the result
      PreFilter, Filter…  each extension point that ran; on request each plugin below it, its calls summed
      bindingCycle        concurrent with later cycles
        PreBind, Bind     each step, by plugin
          POST …/binding  each request, which passes the context to the API server (traceparent)

It is an observer like the recorder of decisions, and wraps two metrics. This module is imported only if tracing is on;
a cycle that is not sampled costs one random number.
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

from kubestow.api.failures import CallError
from kubestow.cli.scheduler.options import TracingOptions
from kubestow.client.api import ApiClient
from kubestow.client.connection import Response
from kubestow.scheduler.binding.binder import FAILED, Attempt, Step
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.cycle.outcome import Outcome, Placed
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.observer import Observer
from kubestow.telemetry.build import KUBERNETES
from kubestow.telemetry.metrics.instruments import Histogram
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_CLOSING_SECONDS = 5.0
_BINDING_POINTS = frozenset(("PreBind", "Bind", "PostBind"))
"""Points outside cycles, covered by the steps of bindings."""
_MILLION = 1_000_000

_current: ContextVar[Any] = ContextVar("span", default=None)
"""The parent span of requests of this task."""


class _Noted(NamedTuple):
    """A completed extension point, or all calls of a plugin at one."""

    name: str
    plugin: str
    status: str
    start: float
    seconds: float


class Tracing(Observer):
    """An observer that creates spans."""

    def __init__(
        self, options: TracingOptions, metrics: SchedulerMetrics, stopwatch: Callable[[], float] = time.perf_counter
    ) -> None:
        resource = Resource.create({"service.name": "kube-scheduler", "service.version": KUBERNETES})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=options.endpoint, insecure=True)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("kubestow")
        self._ratio = options.per_million / _MILLION
        self._random = random.Random().random
        self._stopwatch = stopwatch
        self._offset = time.time() - stopwatch()
        self._noted: list[_Noted] = []
        self._bindings: dict[str, Any] = {}
        _listen(metrics.extension_point_seconds, self._point_ended)
        if options.plugins:
            _listen(metrics.plugin_execution_seconds, self._plugin_ended)

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
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
        details = {"profile": attempt.profile.name, "attempt": attempt.queued.attempts}
        cycle = self._span("schedulingCycle", None, start, about | details)
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
        # The task that binds is created right after this, and inherits it.
        _current.set(self._bindings.get(attempt.queued.uid, cycle))

    def on_group_decision(self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, seconds: float) -> None:
        del outcome
        self._noted.clear()
        if self._random() < self._ratio:
            end = self._stopwatch()
            about = {"k8s.namespace.name": tried.namespace, "podGroup": tried.name, "profile": profile.name}
            span = self._span("podGroupCycle", None, end - seconds, about | {"pods": len(tried.pods)})
            span.end(self._nanoseconds(end))

    def on_binding_step(self, placed: Placed, step: Step) -> None:
        binding = self._bindings.get(placed.pod.uid)
        if binding is None:
            return
        if step.name != FAILED:
            span = self._span(f"{step.name} {step.plugin}".rstrip(), binding, step.started, {})
            span.end(self._nanoseconds(step.ended))
        if step.failed is not None:
            binding.set_status(Status(StatusCode.ERROR, step.failed.message))
        if step.is_bound or step.failed is not None:
            del self._bindings[placed.pod.uid]
            binding.end()

    def traced(self, channel: Any, **settings: Any) -> "TracedClient":
        """Return a client that creates a span per request."""
        client = TracedClient(channel, **settings)
        client.tracer = self._tracer
        return client

    async def close(self) -> None:
        """Send remaining spans, with a time limit."""
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
            # Calls per node are summed.
            self._noted[-1] = last._replace(seconds=last.seconds + seconds, status=status)
        else:
            self._noted.append(_Noted(point, plugin, status, self._stopwatch() - seconds, seconds))

    def _span(self, name: str, parent: Any, start: float, attributes: dict[str, Any]) -> Any:
        context = otel.set_span_in_context(parent or otel.INVALID_SPAN)
        return self._tracer.start_span(name, context, start_time=self._nanoseconds(start), attributes=attributes)

    def _nanoseconds(self, moment: float) -> int:
        return int((moment + self._offset) * 1e9)


class TracedClient(ApiClient):
    """Creates a span for each request inside a span, and passes its context to the server."""

    tracer: Any

    async def request(self, method: str, path: str, *content: Any, **settings: Any) -> Response:
        parent = _current.get()
        if parent is None:
            return await super().request(method, path, *content, **settings)
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
                response = await super().request(method, path, *content, **settings)
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


def _listen(instrument: Histogram, ended: Callable[..., None]) -> None:
    """Call `ended` for each observation of a histogram, by wrapping its method."""
    observe = instrument.observe

    def observed(value: float, *key: str) -> None:
        observe(value, *key)
        ended(value, *key)

    instrument.observe = observed  # type: ignore[method-assign]

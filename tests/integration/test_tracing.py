"""Spans at a real OTLP receiver: the spans of a pod, and none when tracing is off."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as answers
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc

from kubestow.cli.scheduler.options import TracingOptions, tracing_options
from kubestow.telemetry.metrics.catalogue import Metrics
from support.apiserver.running import run_bare
from support.client.scripted import Answer, Request, opened, serving
from support.integration.cluster import PODS, node, pod
from support.polling import until

FILE = """
apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
"""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("samplingRatePerMillion: 1000001", "samplingRatePerMillion: must be from 0 to 1000000"),
        ("samplingRatePerMillion: many", "samplingRatePerMillion"),
        ("endpoint: http://here:1/", "endpoint: must be host:port, not 'http://here:1/'"),
        ("sampling: 1", "sampling"),
        ("kind: Pod", "must be of kind TracingConfiguration and apiVersion apiserver.config.k8s.io/v1"),
    ],
)
def test_errors_name_the_field(more: str, words: str) -> None:
    """Before anything starts."""
    with pytest.raises(ValueError, match=words):
        tracing_options(FILE + more, plugins=False)


def test_defaults() -> None:
    """Kubernetes' defaults: the receiver on this machine, and no samples."""
    assert tracing_options(FILE, plugins=True) == TracingOptions("localhost:4317", 0, True)


@pytest.fixture
def received() -> Iterator[tuple[str, list[Any]]]:
    """The address of a receiver, and the spans that it receives."""
    spans: list[Any] = []

    class Receiver(rpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 the protocol's name
            spans.extend(
                span for batch in request.resource_spans for scope in batch.scope_spans for span in scope.spans
            )
            return answers.ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    rpc.add_TraceServiceServicer_to_server(Receiver(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", spans
    server.stop(None).wait()


def test_a_pod_s_spans(received: tuple[str, list[Any]], tmp_path: Path) -> None:
    """A cycle with its extension points and plugins, the binding as its child, and the request that bound the pod."""
    endpoint, spans = received
    file = tmp_path / "tracing.yaml"
    file.write_text(f"{FILE}endpoint: {endpoint}\nsamplingRatePerMillion: 1000000\n")
    plane = run_bare()
    client = plane.client()
    client.create("/api/v1/nodes", node("n1"))
    client.create(PODS, pod("p"))
    command = [sys.executable, "-m", "kubestow", "scheduler", f"--kubeconfig={plane.control_plane.kubeconfig_path}"]
    flags = ["--secure-port=0", "--leader-elect=false", f"--tracing-config-file={file}", "--tracing-plugins"]
    soon = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with subprocess.Popen([*command, *flags], env=soon) as scheduler:
        until(lambda: scheduler.poll() is not None or any(span.name == "bindingCycle" for span in spans))
        scheduler.send_signal(signal.SIGTERM)
    client.close()
    plane.stop()
    assert scheduler.returncode == 0
    by_name = {span.name: span for span in spans}
    cycle, binding = by_name["schedulingCycle"], by_name["bindingCycle"]
    fields = {attribute.key: attribute.value.string_value for attribute in cycle.attributes}
    assert [fields[f"k8s.{kind}.name"] for kind in ("namespace", "pod", "node")] == ["default", "p", "n1"]
    assert {"PreFilter", "Filter", "Filter NodeResourcesFit"} <= by_name.keys()
    assert by_name["Filter"].parent_span_id == binding.parent_span_id == cycle.span_id
    assert by_name["Bind DefaultBinder"].parent_span_id == binding.span_id
    request = by_name[f"POST {PODS}/p/binding"]
    assert request.parent_span_id == binding.span_id
    assert {span.trace_id for span in spans} == {cycle.trace_id}
    assert cycle.start_time_unix_nano <= by_name["Filter"].start_time_unix_nano <= cycle.end_time_unix_nano
    assert binding.start_time_unix_nano <= request.start_time_unix_nano <= binding.end_time_unix_nano


def test_requests_carry_the_context(received: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a span name it to the server; others are unchanged."""
    from kubestow.cli.scheduler import tracing

    seen: list[str] = []

    async def script(request: Request, answer: Answer) -> None:
        seen.append(request.headers.get("traceparent", ""))
        answer.reply(200)

    async def main() -> Any:
        spans = tracing.Tracing(TracingOptions(received[0], 1_000_000, False), Metrics().scheduler)
        async with serving(script) as server:
            with opened(server) as channel:
                client = spans.traced(channel, user_agent="test")
                await client.request("GET", "/alone")
                parent = spans._span("parent", None, 0.0, {})
                tracing._current.set(parent)
                await client.request("GET", "/below?limit=1")
                parent.end()
        await spans.close()
        return parent.get_span_context()

    # A slow machine may need longer than a terminating process is given.
    monkeypatch.setattr(tracing, "_CLOSING_SECONDS", 300.0)
    context = asyncio.run(main())
    below = next(span for span in received[1] if span.name == "GET /below")
    assert below.parent_span_id == context.span_id.to_bytes(8, "big")
    assert seen == ["", f"00-{context.trace_id:032x}-{below.span_id.hex()}-01"]


def test_nothing_is_imported_when_it_is_off() -> None:
    """Neither OpenTelemetry nor the modules that create spans."""
    program = (
        "import sys, kubestow.cli.scheduler.process\n"
        "print([name for name in sys.modules if 'opentelemetry' in name or 'running.tracing' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""The values of metrics, under the right names and labels."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.config.features import Features
from kubestow.server.health import Check, HealthPage
from kubestow.server.http.messages import Request
from kubestow.telemetry.build import BuildInfo
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.instruments import ALPHA, Counter, Gauge, Histogram
from kubestow.telemetry.metrics.options import MetricOptions
from kubestow.telemetry.metrics.process import add_process_metrics
from kubestow.telemetry.metrics.registry import Registry
from support.telemetry.samples import values


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_gauges_are_set_or_tracked() -> None:
    """A tracked number is read each time, and replaces a set one."""
    gauge = Gauge("g", ALPHA, "", "place")
    gauge.set(1, "a")
    gauge.track(lambda: len(waiting), "b")
    waiting = ["x"]
    assert gauge.read() == {("a",): 1, ("b",): 1}
    waiting.append("y")
    gauge.track(lambda: 7, "a")
    assert gauge.read() == {("a",): 7, ("b",): 2}


def test_sources_add_up() -> None:
    """Several profiles report their plugins under one name."""
    counter = Counter("c", ALPHA, "", "plugin")
    counter.watch(lambda: {("A",): 2})
    counter.watch(lambda: {("A",): 3, ("B",): 1})
    counter.inc("A")
    assert counter.read() == {("A",): 6, ("B",): 1}


def test_health_checks_have_their_own_page(metrics: Metrics) -> None:
    """The page has the last result and the counts by check and endpoint, and the start time."""
    problem = None
    page = HealthPage("healthz", [Check("ping", lambda: problem)], metrics.health)
    request = Request("GET", b"/healthz", {}, b"")
    page.answer(request)
    page.answer(request)
    problem = "tired"
    page.answer(request)
    text = metrics.health.render()[0].decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines.pop().startswith("process_start_time_seconds ")
    assert lines == [
        'kubernetes_healthcheck{name="ping",type="healthz"} 0',
        'kubernetes_healthchecks_total{name="ping",status="error",type="healthz"} 1',
        'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2',
    ]
    assert "kubernetes_healthcheck" not in metrics.render()[0].decode()


def test_features_and_version() -> None:
    """Every gate is shown with its stage, and the version with Kubernetes' labels."""
    metrics = Metrics(Features.parse("GenericWorkload=true"), build=BuildInfo(git_commit="abc"))
    gates = values(metrics.registry, "kubernetes_feature_enabled")
    assert gates[" name=GenericWorkload stage=BETA"] == 1
    assert gates[" name=SchedulerAsyncAPICalls stage=BETA"] == 0
    assert gates[" name=NodeDeclaredFeatures stage="] == 1
    (build,) = values(metrics.registry, "kubernetes_build_info")
    assert "git_commit=abc" in build
    assert " git_version=v1.37.0+kubestow." in build
    assert " major=1 minor=37 " in build


def test_the_process(tmp_path: Path) -> None:
    """Numbers of the process are read from /proc; limits can be missing."""
    own = tmp_path / "self"
    (own / "fd").mkdir(parents=True)
    (own / "fd" / "0").touch()
    (own / "net").mkdir()
    (own / "net" / "netstat").write_text("TcpExt: A\nTcpExt: 1\nIpExt: InOctets OutOctets\nIpExt: 70 80\n")
    (own / "stat").write_text("1 (a) b) S " + " ".join(str(number) for number in range(1, 40)))
    (own / "limits").write_text(
        "Max open files            1024   4096  files\nMax address space  unlimited unlimited bytes\n"
    )
    (tmp_path / "stat").write_text("cpu 1\nbtime 1000\n")
    registry = Registry(MetricOptions())
    add_process_metrics(registry, tmp_path)
    found = values(registry, "process_")
    assert found["open_fds"] == 1
    assert found["max_fds"] == 1024
    assert found["virtual_memory_max_bytes"] == float(2**64 - 1)
    assert found["virtual_memory_bytes"] == 20
    assert found["network_receive_bytes_total"] == 70
    assert found["network_transmit_bytes_total"] == 80
    assert found["start_time_seconds"] > 1000
    assert found["cpu_seconds_total"] > 0


def test_without_proc_the_process_has_no_metrics(tmp_path: Path) -> None:
    """The metrics of the process are omitted."""
    registry = Registry(MetricOptions())
    add_process_metrics(registry, tmp_path)
    assert values(registry, "process_") == {}


@given(st.lists(st.floats(0, 100)), st.lists(st.floats(0, 100), min_size=1, unique=True).map(sorted))
def test_histograms_count_every_value_once(seen: list[float], bounds: list[float]) -> None:
    """A value counts in the first bucket whose bound it does not exceed."""
    histogram = Histogram("h", ALPHA, "", bounds)
    for value in seen:
        histogram.observe(value)
    read = histogram.read()[()]
    cumulated = [sum(read.counts[: index + 1]) for index in range(len(read.counts))]
    assert cumulated == [sum(value <= hook for value in seen) for hook in (*bounds, math.inf)]
    assert read.total == pytest.approx(sum(seen))


def test_invalid_declarations_are_rejected() -> None:
    """Labels out of order and names used twice are errors that name the metric."""
    with pytest.raises(ValueError, match="labels of x must be in alphabetical order, not b a"):
        Counter("x", ALPHA, "", "b a")
    registry = Registry(MetricOptions())
    known = registry.add(Counter("x", ALPHA, ""))
    with pytest.raises(ValueError, match="two metrics named x"):
        registry.add(Counter("x", ALPHA, "other"))
    # A plugin that is created again continues to count.
    assert registry.add(Counter("x", ALPHA, "")) is known

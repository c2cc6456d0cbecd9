"""The exposition of metrics: its text, its formats, and their selection."""

import io
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from kubestow.telemetry.log_setup import LogOptions, LogOutput
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.exposition import OPENMETRICS, TEXT, number, render
from kubestow.telemetry.metrics.instruments import ALPHA, NO_LEVEL, STABLE, Counter, Family, Gauge, Histogram
from support.telemetry.everything import everything_happens


def families() -> list[Family]:
    tries = Counter("tries_total", STABLE, "How often.", "profile result")
    tries.inc("b", "error")
    tries.inc("a", 'say "hi"\n')
    tries.inc("a", 'say "hi"\n')
    seconds = Histogram("wait_seconds", ALPHA, "How long.", (0.5, 1, 2_592_000), "queue")
    for value in (0.5, 0.6, 1, 7, 3e6):
        seconds.observe(value, "x")
    size = Gauge("size", NO_LEVEL, "How much.")
    size.set(2.5)
    return [size, tries, Counter("unused_total", ALPHA, "Never.", "name"), seconds]


def test_text() -> None:
    """Families have help and type, samples are sorted by label values, and unused metrics are omitted."""
    page, content_type = render(families())
    assert content_type == TEXT
    assert page.decode() == (
        "# HELP size How much.\n"
        "# TYPE size gauge\n"
        "size 2.5\n"
        "# HELP tries_total [STABLE] How often.\n"
        "# TYPE tries_total counter\n"
        'tries_total{profile="a",result="say \\"hi\\"\\n"} 2\n'
        'tries_total{profile="b",result="error"} 1\n'
        "# HELP wait_seconds [ALPHA] How long.\n"
        "# TYPE wait_seconds histogram\n"
        'wait_seconds_bucket{queue="x",le="0.5"} 1\n'
        'wait_seconds_bucket{queue="x",le="1"} 3\n'
        'wait_seconds_bucket{queue="x",le="2.592e+06"} 4\n'
        'wait_seconds_bucket{queue="x",le="+Inf"} 5\n'
        'wait_seconds_sum{queue="x"} 3.0000091e+06\n'
        'wait_seconds_count{queue="x"} 5\n'
    )


def test_openmetrics() -> None:
    """OpenMetrics declares counters without `_total`, writes bounds with a decimal point, and marks the end."""
    page, content_type = render(families(), "application/openmetrics-text")
    assert content_type == OPENMETRICS
    text = page.decode()
    assert "# TYPE tries counter\ntries_total{" in text
    assert 'le="1.0"' in text
    assert text.endswith('wait_seconds_count{queue="x"} 5\n# EOF\n')


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; escaping=allow-utf-8; q=0.5", OPENMETRICS),
        ("application/openmetrics-text,text/plain;q=0", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", TEXT),
        ("application/openmetrics-text;version=1.0.0,*/*;q=0.2", TEXT),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.1", TEXT),
        ("application/openmetrics-text;version=0.0.1", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=much", TEXT),
        (";;,=,application/openmetrics-text;version=x", TEXT),
        ("application/vnd.google.protobuf;q=1", TEXT),
    ],
)
def test_the_format_is_what_kube_scheduler_serves(accept: str, content_type: str) -> None:
    """Prometheus gets text although it prefers OpenMetrics, in which the names of buckets differ."""
    assert render([], accept)[1] == content_type


def test_prometheus_parses_both_formats() -> None:
    """The parsers of Prometheus find the same metrics in both formats."""
    metrics = Metrics()
    with everything_happens(metrics):
        text = list(text_string_to_metric_families(metrics.render()[0].decode()))
        read_openmetrics: Any = openmetrics_parser.text_string_to_metric_families
        other = list(read_openmetrics(metrics.render("application/openmetrics-text")[0].decode()))
    assert len(text) > 50
    assert [family.name for family in text] == [family.name for family in other]
    assert not [sample.name for family in text for sample in family.samples if sample.name.endswith("_created")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (-3, "-3"),
        (0.1, "0.1"),
        (1e-05, "1e-05"),
        (999_999, "999999"),
        (1_000_000, "1e+06"),
        (1_048_576, "1.048576e+06"),
        (-1_234_567.5, "-1.2345675e+06"),
        (2**64, "1.8446744073709552e+19"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    """Numbers have Go's format."""
    assert number(value) == text


@given(st.floats(allow_nan=False))
def test_numbers_are_exact(value: float) -> None:
    """Every number can be parsed back exactly."""
    assert float(number(value)) == value


def test_a_source_that_fails_hides_only_its_own_metric() -> None:
    """The other metrics are served, and the failure is logged with the metric's name."""
    broken = Gauge("broken", ALPHA, "Cannot be read.", "name")
    broken.watch(lambda: {(): 1 / 0})
    stream = io.StringIO()
    output = LogOutput(LogOptions(), err=stream)
    output.open()
    try:
        page, _ = render([broken, *families()])
    finally:
        output.close()
    assert page == render(families())[0]
    assert '"Metric cannot be read" err="division by zero" metric="broken"' in stream.getvalue()

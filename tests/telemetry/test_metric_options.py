"""The metrics flags: disabled metrics are not served, label values that are not allowed are merged."""

from pathlib import Path
from typing import Any

import pytest

from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.options import MetricOptions, MetricOptionsError, metric_options

ALLOWED = {"scheduler_schedule_attempts_total,profile": "a,b", "scheduler_event_handling_duration_seconds,event": "X"}


def page(options: MetricOptions) -> str:
    metrics = Metrics(options=options)
    for profile in ("a", "c", "d", "d"):
        metrics.scheduler.schedule_attempts.inc(profile, "error")
        metrics.scheduler.scheduling_attempt_seconds.observe(1, profile, "error")
    for event in ("X", "Y", "Z"):
        metrics.scheduler.event_handling_seconds.observe(1, event)
    return metrics.render()[0].decode()


def test_disabled_metrics_are_not_served() -> None:
    """They are counted as disabled; the others are served."""
    text = page(metric_options(disabled=["scheduler_schedule_attempts_total", "no_such_metric"]))
    assert "scheduler_schedule_attempts_total" not in text
    assert "scheduler_scheduling_attempt_duration_seconds_count" in text
    assert "\ndisabled_metrics_total 2\n" in text


def test_label_values_that_are_not_allowed() -> None:
    """They are merged as `unexpected`, in counters and histograms, and counted."""
    text = page(metric_options(allowed=ALLOWED))
    assert 'attempts_total{profile="a",result="error"} 1\n' in text
    assert 'attempts_total{profile="unexpected",result="error"} 3\n' in text
    assert 'attempts_total{profile="c"' not in text
    assert 'event_handling_duration_seconds_count{event="X"} 1\n' in text
    assert 'event_handling_duration_seconds_count{event="unexpected"} 2\n' in text
    assert 'event_handling_duration_seconds_bucket{event="unexpected",le="+Inf"} 2\n' in text
    assert "\ncardinality_enforcement_unexpected_categorizations_total 5\n" in text
    assert 'scheduling_attempt_duration_seconds_count{profile="c",result="error"} 1\n' in text


def test_label_values_of_gauges() -> None:
    """Each counts once, for each label; numbers of counters are also counted if they are read from a source."""
    allowed = {
        "scheduler_unschedulable_pods,plugin": "A",
        "scheduler_unschedulable_pods,profile": "a",
        "scheduler_cache_size,type": "nodes",
        "scheduler_plugin_evaluation_total,plugin": "A",
    }
    metrics = Metrics(options=metric_options(allowed=allowed))
    waiting: dict[tuple[str, ...], float] = {("A", "a"): 1, ("B", "a"): 2, ("B", "b"): 3}
    metrics.scheduler.unschedulable_pods.watch(lambda: waiting)
    metrics.scheduler.cache_size.track(lambda: 5, "pods")
    metrics.scheduler.plugin_evaluations.watch(lambda: {("Filter", "B", "a"): 10})
    for _ in range(2):
        text = metrics.render()[0].decode()
        assert "\ncardinality_enforcement_unexpected_categorizations_total 14\n" in text
        waiting.clear()
    assert 'scheduler_cache_size{type="unexpected"} 5\n' in text


def test_allowed_values_from_a_manifest(tmp_path: Path) -> None:
    """A file has the same effect as the flag; an empty one allows everything."""
    manifest = tmp_path / "allowed.yaml"
    manifest.write_text("".join(f'"{key}": "{value}"\n' for key, value in ALLOWED.items()))
    assert metric_options(allowed_manifest=str(manifest)) == metric_options(allowed=ALLOWED)
    manifest.write_text("")
    assert metric_options(allowed_manifest=str(manifest)) == MetricOptions()


def test_hidden_metrics_of_the_previous_version() -> None:
    """They are counted, and served if they are requested, marked as deprecated."""
    hidden = "scheduler_preemption_goroutines_duration_seconds"
    text = Metrics().render()[0].decode()
    assert hidden not in text
    assert "\nhidden_metrics_total 1\n" in text
    metrics = Metrics(options=metric_options(hidden_for_version="1.36"))
    metrics.scheduler.preemption_goroutine_seconds.observe(1.0, "success")
    text = metrics.render()[0].decode()
    assert f"# HELP {hidden} [ALPHA] (Deprecated since 1.37.0) Duration" in text
    assert "\nhidden_metrics_total 0\n" in text
    assert '\nregistered_metrics_total{deprecated_version="1.37.0",stability_level="ALPHA"} 1\n' in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"hidden_for_version": "1.35"}, "--show-hidden-metrics-for-version must be omitted or 1.36"),
        ({"disabled": ["a b"]}, "--disabled-metrics requires full names of metrics, not 'a b'"),
        ({"disabled": [""]}, "--disabled-metrics requires full names of metrics, not ''"),
        ({"allowed": {"metric": "x"}}, "--allow-metric-labels: 'metric' is not of the form metric,label"),
        ({"allowed": ALLOWED, "allowed_manifest": "f"}, "exclude each other"),
        (
            {"allowed_manifest": "/no/such/file"},
            "--allow-metric-labels-manifest: cannot read /no/such/file: No such",
        ),
    ],
)
def test_invalid_flags(flags: dict[str, Any], message: str) -> None:
    """The error names the flag and the problem."""
    with pytest.raises(MetricOptionsError, match=message):
        metric_options(**flags)


@pytest.mark.parametrize("text", ["[1, 2]", "a,b: [x]", "a: {", "7: x"])
def test_invalid_manifests(tmp_path: Path, text: str) -> None:
    """A manifest that does not map strings to strings is rejected; the error names the file."""
    manifest = tmp_path / "allowed.yaml"
    manifest.write_text(text)
    with pytest.raises(MetricOptionsError, match=r"--allow-metric-labels-manifest .*allowed.yaml: "):
        metric_options(allowed_manifest=str(manifest))

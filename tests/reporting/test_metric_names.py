"""Metrics have the names, types, labels, buckets and levels of kube-scheduler's."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from kubestow.config.features import Features
from kubestow.reporting.metrics.catalogue import Metrics
from reporting.doubles import everything_happens

TABLE = Path(__file__).with_name("expected_metrics.txt")


class Metric(NamedTuple):
    kind: str
    level: str
    labels: tuple[str, ...]
    buckets: tuple[str, ...]


def expected() -> dict[str, Metric]:
    buckets: dict[str, tuple[str, ...]] = {"": ()}
    metrics = {}
    for line in TABLE.read_text().splitlines():
        name, *fields = line.removesuffix(" *").split()
        if name.startswith("@"):
            buckets[name] = (*fields, "+Inf")
        elif name != "#":
            kind, level, labels = fields[:3]
            metrics[name] = Metric(
                kind, level, () if labels == "-" else tuple(labels.split(",")), buckets["".join(fields[3:])]
            )
    return metrics


def shown(page: str) -> dict[str, Metric]:
    """What a page of metrics in text form shows, read line by line."""
    metrics: dict[str, Metric] = {}
    for block in re.split(r"^# HELP ", page, flags=re.MULTILINE)[1:]:
        (head, kind, *samples) = block.splitlines()
        name, _, text = head.partition(" ")
        level = re.match(r"\[([A-Z]+)\] ", text)
        labels = [label for label in re.findall(r'(\w+)="', samples[0]) if label != "le"]
        bounds = dict.fromkeys(re.findall(r'\ble="([^"]+)"', block))
        metrics[name] = Metric(kind.split()[-1], level[1] if level else "-", tuple(labels), tuple(bounds))
    return metrics


def test_everything_kube_scheduler_has() -> None:
    """After everything has happened once, the page has exactly the metrics of the table."""
    metrics = Metrics(Features.parse("SchedulerAsyncAPICalls=true,GenericWorkload=true"))
    everything_happens(metrics)
    page, _ = metrics.render()
    assert shown(page.decode()) == expected()


@pytest.mark.parametrize(
    ("gates", "prefix"),
    [
        ("GenericWorkload=false", "scheduler_podgroup_"),
        ("SchedulerAsyncAPICalls=false", "scheduler_async_api_call_"),
        ("SchedulerAsyncAPICalls=false", "scheduler_pending_async_api_calls"),
        ("SchedulerAsyncPreemption=false", "scheduler_preemption_goroutines_"),
        ("DRAExtendedResource=false", "scheduler_resourceclaim_"),
        ("DRADeviceBindingConditions=false", "scheduler_dra_"),
    ],
)
def test_metrics_of_features_that_are_off(gates: str, prefix: str) -> None:
    """A metric that belongs to a feature is not served while the feature is off."""
    assert any(name.startswith(prefix) for name in expected())
    metrics = Metrics(Features.parse(gates))
    everything_happens(metrics)
    assert not [name for name in shown(metrics.render()[0].decode()) if name.startswith(prefix)]


def test_nothing_is_shown_before_it_happens() -> None:
    """At the start only metrics without labels, and those that are always known, have values."""
    names = shown(Metrics().render()[0].decode()).keys()
    assert "scheduler_schedule_attempts_total" not in names
    assert {name for name in names if name.startswith("scheduler_")} == {
        "scheduler_pod_scheduled_after_flush_total",
        "scheduler_pod_scheduling_attempts",
        "scheduler_preemption_attempts_total",
        "scheduler_preemption_victims",
        "scheduler_scheduling_algorithm_duration_seconds",
    }

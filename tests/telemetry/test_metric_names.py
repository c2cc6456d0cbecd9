"""Metrics have the names, types, labels, buckets and stability levels of kube-scheduler."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from kubestow.config.features import Features
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.instruments import Family, Histogram, Numbers
from support.reference import REFERENCE, with_reference
from support.telemetry.everything import FEATURES, everything_happens

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
    """Return the metrics of a page in text format, parsed line by line."""
    metrics: dict[str, Metric] = {}
    for block in re.split(r"^# HELP ", page, flags=re.MULTILINE)[1:]:
        (head, kind, *samples) = block.splitlines()
        name, _, text = head.partition(" ")
        level = re.match(r"\[([A-Z]+)\] ", text)
        labels = [label for label in re.findall(r'(\w+)="', samples[0]) if label != "le"]
        bounds = dict.fromkeys(re.findall(r'\ble="([^"]+)"', block))
        metrics[name] = Metric(kind.split()[-1], level[1] if level else "-", tuple(labels), tuple(bounds))
    return metrics


NEVER_UPDATED = {
    "cardinality_enforcement_unexpected_categorizations_total": "only with --allow-metric-labels",
    "disabled_metrics_total": "only with --disabled-metrics",
    "rest_client_transport_cert_rotation_gc_calls_total": "transports are closed explicitly",
}
"""Metrics that are 0 in kube-scheduler, and here, too."""


def is_updated(family: Family) -> bool:
    if isinstance(family, Histogram):
        return any(sum(observed.counts) for observed in family.read().values())
    assert isinstance(family, Numbers)
    return any(family.read().values()) if not family.labels else bool(family.read())


def test_every_metric_is_updated() -> None:
    """After all scenarios every metric has a value, under the name, labels and buckets of the table.

    So the table and the reference page, which is generated from the same declarations, have no unused metric.
    """
    metrics = Metrics(FEATURES)
    with everything_happens(metrics):
        page, _ = metrics.render()
        unused = {family.name for family in metrics.registry.families() if not is_updated(family)}
        health = [is_updated(family) for family in metrics.health.registry.families()]
    assert shown(page.decode()) == expected()
    assert unused == NEVER_UPDATED.keys()
    assert health == [True, True, True]


@with_reference
def test_the_table_equals_a_kube_scheduler() -> None:
    """Type and labels of all metrics that a kube-scheduler served, except those of the Go runtime."""
    mine = expected()
    seen = {}
    for line in (REFERENCE / "v1.37/metrics.txt").read_text().splitlines()[1:]:
        name, kind, labels = re.fullmatch(r"(\S+) (\S+) labels=(\[.*\])", line).groups()  # type: ignore[union-attr]
        seen[name] = (kind, tuple(ast.literal_eval(labels)))
    assert {name: (mine[name].kind, mine[name].labels) for name in seen} == seen


@with_reference
def test_the_buckets_equal_those_of_a_kube_scheduler() -> None:
    """All bounds, as served by the version before; it has the same buckets."""
    mine = expected()
    found = re.findall(r"^(\S+) .* buckets=(.*)$", (REFERENCE / "metrics.txt").read_text(), re.MULTILINE)
    assert found
    assert {name: mine[name].buckets for name, _ in found} == {
        name: tuple(ast.literal_eval(buckets)) for name, buckets in found
    }


@pytest.mark.parametrize(
    ("gates", "prefix"),
    [
        ("SchedulerAsyncAPICalls=false", "scheduler_async_api_call_"),
        ("SchedulerAsyncAPICalls=false", "scheduler_pending_async_api_calls"),
        ("SchedulerAsyncPreemption=false", "scheduler_preemption_goroutines_"),
    ],
)
def test_metrics_of_disabled_features(gates: str, prefix: str) -> None:
    """A metric of a feature is not served while the feature is disabled."""
    assert any(name.startswith(prefix) for name in expected())
    served = [family.name for family in Metrics(Features.parse(gates)).registry.families()]
    assert not [name for name in served if name.startswith(prefix)]


def test_metrics_without_values_are_not_shown() -> None:
    """At the start only metrics without labels, and those that are read from their source, have values."""
    names = shown(Metrics().render()[0].decode()).keys()
    assert "scheduler_schedule_attempts_total" not in names
    assert {name for name in names if name.startswith("scheduler_")} == {
        "scheduler_pod_scheduled_after_flush_total",
        "scheduler_pod_scheduling_attempts",
        "scheduler_preemption_attempts_total",
        "scheduler_preemption_victims",
        "scheduler_scheduling_algorithm_duration_seconds",
    }

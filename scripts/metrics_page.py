#!/usr/bin/env python3
"""Write docs/reference/metrics.md from the metric definitions."""

from pathlib import Path

import msgspec

from kubestow.config.features import SCHEDULING_GATES, Features
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.exposition import number
from kubestow.telemetry.metrics.instruments import Family, Histogram
from kubestow.telemetry.metrics.options import MetricOptions

PAGE = Path(__file__).parents[1] / "docs/reference/metrics.md"

INTRODUCTION = """\
# Metrics

<!-- Written by scripts/metrics_page.py; change src/kubestow/telemetry/metrics and run it again. -->

Served at `/metrics`, with the names, types, labels, buckets and levels of stability of kube-scheduler v1.37, so that
dashboards and alerts keep working. The format is Prometheus text as there, or OpenMetrics for a client whose `Accept`
header names nothing else. A metric with labels is shown once it has a value.

Some metrics have a different meaning, as this scheduler is not a Go program:

- `scheduler_goroutines` counts tasks that run beside the scheduling loop.
- `scheduler_batch_...`, `scheduler_get_node_hint_...` and `scheduler_store_schedule_results_...` measure how often,
  and how fast, the results of one pod were reused for equal pods. Results are stored by the first pod if the next one
  of the queue is equal, else by the second equal pod. Nodes that have changed are evaluated again, so results are
  used after any other pods and after any time: of equal pods that arrive one by one, two count as `no_hint` and all
  others as `hint_used`. kube-scheduler uses results for the directly following pod, within half a second, and counts
  others as `no_hint`.
- `scheduler_batch_cache_flushed_total` has the reason `expired` only: the results that were not used for the longest
  time make room for others. kube-scheduler discards results for other reasons, such as `pod_skipped`,
  `pod_incompatible` and `empty_list`, that do not make these results useless.
- `scheduler_pre_queueing_hint_evaluations_total` does not exist: the gate `SchedulerPreQueueingHints`, which is off
  by default, [changes nothing](feature-gates.md), and without it kube-scheduler has no values of this metric.
- `scheduler_queue_incoming_pods_total` counts a pod that joins a waiting pod group once; kube-scheduler counts all
  pods of the group again.
- `scheduler_framework_extension_point_duration_seconds` leaves out extension points at which no plugin had work
  (Permit, PreBind and PostBind of most pods), PreEnqueue and Sign; kube-scheduler counts every pod at each. A plugin
  that was never called has no `scheduler_plugin_evaluation_total`, where kube-scheduler has 0.
- `leader_election_master_status` has the name of the lease; kube-scheduler's is `kube-scheduler` whatever its lease.
- `kubernetes_build_info` has the interpreter's version as `go_version`.
- `cardinality_enforcement_unexpected_categorizations_total` counts a label value of a gauge once, not at each change.
- `rest_client_transport_cert_rotation_gc_calls_total` stays 0, and there are no `go_...` metrics.

`/metrics/slis` has the results of health checks: `kubernetes_healthcheck` (gauge: 1 if it passed last; labels
`name`, `type`) and `kubernetes_healthchecks_total` (counter; labels `name`, `status`, `type`), both STABLE.

Flags change what is served:

| flag | effect |
|---|---|
| `--disabled-metrics=NAME,...` | these metrics are not served |
| `--allow-metric-labels=METRIC,LABEL=VALUE,...` | other values of the label are counted together, as `unexpected` |
| `--allow-metric-labels-manifest=FILE` | the same from a YAML file that maps `METRIC,LABEL` to `VALUE,...` |
| `--show-hidden-metrics-for-version=1.36` | metrics that v1.37 hides are served; they are marked as deprecated below |

"""

HEAD = "| metric | type | level | labels | buckets | meaning |\n|---|---|---|---|---|---|\n"


def page() -> str:
    """Return the text of the page."""
    everything = Features.running({gate.name: True for gate in SCHEDULING_GATES})
    families = Metrics(everything, MetricOptions(shows_hidden=True)).registry.families()
    needed = _needed_features(everything, {family.name for family in families})
    return INTRODUCTION + HEAD + "".join(_row(family, needed.get(family.name, "")) for family in families)


def _needed_features(everything: Features, names: set[str]) -> dict[str, str]:
    """Return the feature that each metric requires, by metric."""
    needed = {}
    for gate, field in zip(SCHEDULING_GATES, Features.__struct_fields__, strict=False):
        without = Metrics(msgspec.structs.replace(everything, **{field: False}), MetricOptions(shows_hidden=True))
        for name in names - {family.name for family in without.registry.families()}:
            needed[name] = gate.name
    return needed


def _row(family: Family, feature: str) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    meaning = family.text.removeprefix(f"[{family.level}] ") + (f" Only with `{feature}`." if feature else "")
    return f"| `{family.name}` | {family.kind} | {family.level} | {labels} | {_buckets(family)} | {meaning} |\n"


def _buckets(family: Family) -> str:
    if not isinstance(family, Histogram):
        return ""
    return f"{len(family.bounds)}, {number(family.bounds[0])} to {number(float(f'{family.bounds[-1]:.6g}'))}"


if __name__ == "__main__":
    PAGE.write_text(page())

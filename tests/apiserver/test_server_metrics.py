"""Metrics of the server, under the names, labels and buckets of kube-apiserver."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow.apiserver.rest.metering import InFlight
from support.apiserver.running import Client, Running, pod
from support.polling import until

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
Samples = dict[str, list[tuple[dict[str, str], float]]]
REQUEST = {"component", "group", "resource", "scope", "subresource", "verb", "version"}
SECONDS = "0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf"
LABELS: dict[str, set[str]] = {
    "apiserver_request_total": {*REQUEST, "code", "dry_run"},
    "apiserver_request_duration_seconds_bucket": {*REQUEST, "dry_run", "le"},
    "apiserver_request_sli_duration_seconds_bucket": {*REQUEST, "le"},
    "apiserver_response_sizes_bucket": {*REQUEST, "le"},
    "apiserver_current_inflight_requests": {"request_kind"},
    "apiserver_longrunning_requests": REQUEST,
    "apiserver_watch_events_total": {"group", "resource", "version"},
    "apiserver_storage_objects": {"resource"},
    "apiserver_resource_objects": {"group", "resource"},
    "apiserver_resource_size_estimate_bytes": {"group", "resource"},
    "apiserver_storage_size_bytes": {"storage_cluster_id"},
    "apiserver_admission_step_admission_duration_seconds_bucket": {"operation", "rejected", "type", "le"},
    "apiserver_audit_event_total": set(),
    "apiserver_audit_level_total": {"level"},
    "apiserver_audit_error_total": {"plugin"},
    "workqueue_adds_total": {"name"},
    "workqueue_depth": {"name"},
    "workqueue_queue_duration_seconds_bucket": {"name", "le"},
    "workqueue_work_duration_seconds_bucket": {"name", "le"},
    "process_resident_memory_bytes": set(),
    "process_cpu_seconds_total": set(),
    "process_start_time_seconds": set(),
}
BUCKETS = {
    "apiserver_request_duration_seconds": f"0.005 0.025 {SECONDS}",
    "apiserver_request_sli_duration_seconds": SECONDS,
    "apiserver_response_sizes": "1000 10000 100000 1e+06 1e+07 1e+08 1e+09 +Inf",
    "apiserver_admission_step_admission_duration_seconds": "0.005 0.025 0.1 0.5 1 2.5 +Inf",
}


def scrape(client: Client) -> Samples:
    """Return all samples by name."""
    status, body = client.call("GET", "/metrics")
    assert status == 200
    found: Samples = {}
    for line in body.decode().splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            found.setdefault(match[1], []).append((dict(LABEL.findall(match[2] or "")), float(match[3])))
    return found


def total(samples: Samples, metric: str, /, **labels: str) -> float:
    """Return the sum of the samples with these labels."""
    return sum(value for found, value in samples.get(metric, ()) if labels.items() <= found.items())


def test_names_labels_and_buckets_are_those_of_kube_apiserver(start: Callable[..., Running], tmp_path: Path) -> None:
    """All that public dashboards and alerts use."""
    plane = start(data_dir=tmp_path / "data", audit_log=tmp_path / "audit.jsonl", controllers=True)
    client = plane.client()
    client.create(DEPLOYMENTS, _deployment())
    client.get(PODS)
    plane.watch(f"{PODS}?watch=1").until(lambda event: bool(event["type"] == "ADDED"))
    samples = scrape(client)
    assert {name: set(samples[name][0][0]) for name in LABELS if samples.get(name)} == LABELS
    for name, bounds in BUCKETS.items():
        series = [labels for labels, _ in samples[f"{name}_bucket"]]
        others = {key: value for key, value in series[0].items() if key != "le"}
        assert [one["le"] for one in series if others.items() <= one.items()] == bounds.split()
    assert total(samples, "workqueue_adds_total", name="Deployments") > 0
    assert total(samples, "apiserver_storage_size_bytes") == (tmp_path / "data" / "objects.db").stat().st_size
    assert total(samples, "apiserver_audit_event_total") == total(samples, "apiserver_audit_level_total") > 0


def _deployment() -> dict[str, Any]:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod("a")["spec"]}
    return {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


@pytest.mark.parametrize(
    ("method", "path", "content", "labels"),
    [
        ("GET", PODS, "", {"verb": "LIST", "scope": "namespace", "resource": "pods", "version": "v1"}),
        ("GET", "/api/v1/pods", "", {"verb": "LIST", "scope": "cluster", "code": "200"}),
        ("HEAD", "/api/v1/nodes", "", {"verb": "LIST", "scope": "cluster", "resource": "nodes"}),
        ("GET", f"{PODS}/a", "", {"verb": "GET", "scope": "resource", "code": "200"}),
        ("GET", f"{PODS}/none", "", {"verb": "GET", "scope": "resource", "code": "404"}),
        ("GET", f"{PODS}/a/status", "", {"verb": "GET", "subresource": "status", "code": "200"}),
        ("GET", f"{PODS}/a/log", "", {"verb": "CONNECT", "subresource": "log", "code": "501"}),
        ("POST", PODS, "json", {"verb": "POST", "scope": "resource", "code": "422"}),
        ("POST", f"{PODS}?dryRun=All", "json", {"verb": "POST", "dry_run": "All"}),
        ("POST", f"{PODS}?dryRun=x", "json", {"verb": "POST", "dry_run": "invalid"}),
        ("PATCH", f"{PODS}/a", "merge-patch+json", {"verb": "PATCH", "code": "200"}),
        ("PATCH", f"{PODS}/a?fieldManager=m", "apply-patch+yaml", {"verb": "APPLY"}),
        ("DELETE", f"{PODS}/b", "", {"verb": "DELETE", "scope": "resource"}),
        ("DELETE", PODS, "", {"verb": "DELETE", "scope": "namespace", "code": "200"}),
        ("OPTIONS", PODS, "", {"verb": "other", "code": "405"}),
        ("GET", "/apis/apps/v1/deployments?watch=1&resourceVersion=x", "", {"verb": "WATCH", "code": "400"}),
        ("GET", "/readyz", "", {"verb": "GET", "subresource": "/readyz", "resource": "", "scope": ""}),
        ("GET", "/apis", "", {"verb": "GET", "subresource": "", "resource": "", "code": "200"}),
    ],
)
def test_each_request_is_counted_with_its_labels(
    client: Client, method: str, path: str, content: str, labels: dict[str, str]
) -> None:
    """Once, with its duration; sizes are those of reads."""
    client.create(PODS, pod("a"))
    before = scrape(client)
    client.raw(method, path, b"{}" if content else None, {"Content-Type": f"application/{content}"}).read()
    after = scrape(client)

    def growth(metric: str, **labels: str) -> float:
        return total(after, metric, **labels) - total(before, metric, **labels)

    # The first scrape is a request without a resource, too.
    own = 1 if path == "/apis" else 0
    assert growth("apiserver_request_total", **labels) == 1 + own
    labels.pop("code", "")
    assert growth("apiserver_request_duration_seconds_count", **labels) == 1 + own
    dry = labels.pop("dry_run", "")
    assert growth("apiserver_request_sli_duration_seconds_count", **labels) == (0 if dry else 1 + own)
    reads = labels["verb"] in ("GET", "LIST")
    assert growth("apiserver_response_sizes_count", **labels) == (1 + own if reads else 0)


def test_watches_are_counted_when_they_end(plane: Running, client: Client) -> None:
    """Until then they are long-running requests; the events they received are counted."""
    labels = {"verb": "WATCH", "resource": "pods", "scope": "namespace"}
    watch = plane.watch(f"{PODS}?watch=1")
    for name in ("a", "b"):
        client.create(PODS, pod(name))
        watch.next()
    samples = scrape(client)
    assert total(samples, "apiserver_longrunning_requests", **labels) == 1
    assert total(samples, "apiserver_request_total", **labels) == 0
    assert total(samples, "apiserver_watch_events_total", resource="pods") == 2
    watch.client.close()
    until(lambda: total(scrape(client), "apiserver_longrunning_requests", **labels) == 0)
    samples = scrape(client)
    assert total(samples, "apiserver_request_total", code="200", **labels) == 1
    assert total(samples, "apiserver_watch_events_total", resource="pods") == 2


def test_stored_objects_are_counted(client: Client) -> None:
    """With their size."""
    before = scrape(client)
    created = client.create(PODS, pod("a"))
    after = scrape(client)
    assert total(after, "apiserver_storage_objects", resource="pods") == 1
    assert total(after, "apiserver_resource_objects", group="apps", resource="deployments") == 0
    assert total(before, "apiserver_resource_size_estimate_bytes", group="", resource="pods") == 0
    size = total(after, "apiserver_resource_size_estimate_bytes", group="", resource="pods")
    assert size == len(json.dumps(created, separators=(",", ":")))
    assert "apiserver_storage_size_bytes" not in after


def test_admission_is_measured(client: Client) -> None:
    """Each step of a write, with its result."""
    before = scrape(client)
    client.call("POST", PODS, pod("a"))
    client.call("POST", PODS, pod("b", priorityClassName="none"))
    client.delete(f"{PODS}/a")
    after = scrape(client)
    name = "apiserver_admission_step_admission_duration_seconds_count"
    for labels, count in (
        ({"type": "admit", "operation": "CREATE", "rejected": "false"}, 1),
        ({"type": "admit", "operation": "CREATE", "rejected": "true"}, 1),
        ({"type": "validate", "operation": "CREATE", "rejected": "false"}, 1),
        ({"type": "validate", "operation": "DELETE", "rejected": "false"}, 1),
    ):
        assert total(after, name, **labels) - total(before, name, **labels) == count, labels


def test_requests_that_wait_for_the_disk_are_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maximum of this second and the one before."""
    now = 100.0
    monkeypatch.setattr("kubestow.apiserver.rest.metering.perf_counter", lambda: now)
    requests = InFlight()
    for _ in range(3):
        requests.enter()
    for _ in range(2):
        requests.leave()
    assert requests.peak() == 3
    now = 101.5
    assert requests.peak() == 3
    now = 102.5
    assert requests.peak() == 1
    requests.leave()
    now = 110.0
    assert requests.peak() == 0


def test_writes_on_disk_are_counted_when_they_are_durable(start: Callable[..., Running], tmp_path: Path) -> None:
    """Like all others, and as requests in flight."""
    client = start(data_dir=tmp_path).client()
    client.create(PODS, pod("a"))
    samples = scrape(client)
    assert total(samples, "apiserver_request_total", verb="POST", resource="pods", code="201") == 1
    assert total(samples, "apiserver_current_inflight_requests", request_kind="mutating") == 1
    assert total(samples, "apiserver_current_inflight_requests", request_kind="readOnly") == 1


def test_health_checks_are_metrics_of_their_own(client: Client) -> None:
    """As at /metrics/slis of kube-apiserver."""
    client.call("GET", "/readyz")
    status, body = client.call("GET", "/metrics/slis")
    assert status == 200
    assert b'kubernetes_healthcheck{name="etcd",type="readyz"} 1\n' in body

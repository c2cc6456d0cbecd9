"""The metrics of the embedded API server: those of kube-apiserver that dashboards and alerts use.

Requests are recorded with `requests_with(labels)`: the counts and durations of requests with the same labels, which the
server keeps, so that a request costs one append and one addition. Everything else is read when metrics are scraped.
"""

from typing import NamedTuple

from kubestow.config.features import Features
from kubestow.telemetry.build import BuildInfo
from kubestow.telemetry.metrics import exposition
from kubestow.telemetry.metrics.build import add_build_metrics
from kubestow.telemetry.metrics.instruments import (
    ALPHA,
    BETA,
    MAX_RECENT,
    STABLE,
    Counter,
    Distribution,
    Gauge,
    Histogram,
    Key,
    Observations,
)
from kubestow.telemetry.metrics.process import add_process_metrics
from kubestow.telemetry.metrics.registry import Registry
from kubestow.telemetry.metrics.work_queues import WorkQueueMetrics

_FINE = (0.005, 0.025)
_COARSE = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_BYTES = tuple(10**power for power in range(3, 10))
_ADMISSION = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_LABELS = "component group resource scope subresource verb version"
COMPONENT = "apiserver"


class RequestLabels(NamedTuple):
    """The labels of a request, in alphabetical order."""

    dry_run: str
    group: str
    resource: str
    scope: str
    subresource: str
    verb: str
    version: str


class Requests:
    """The requests with the same labels."""

    __slots__ = ("_durations", "_sizes", "codes", "durations", "labels", "sizes")

    def __init__(self, labels: RequestLabels, durations: Observations, sizes: Observations | None) -> None:
        self.labels = labels
        self.codes: dict[int, int] = {}
        """The number of requests by status code."""
        self._durations, self._sizes = durations, sizes
        self.durations = durations.recent
        self.sizes = None if sizes is None else sizes.recent

    def record(self, code: int, seconds: float, size: int) -> None:
        """Record a request, with the size of its response in bytes."""
        self.codes[code] = self.codes.get(code, 0) + 1
        self.durations.append(seconds)
        if len(self.durations) >= MAX_RECENT:
            self._durations.count()
        if self.sizes is not None and self._sizes is not None:
            self.sizes.append(size)
            if len(self.sizes) >= MAX_RECENT:
                self._sizes.count()


class _SliDurations(Histogram):
    """The durations of all requests but dry runs, derived from those of all requests: there are no webhooks."""

    def __init__(self, name: str, level: str, text: str, durations: Histogram) -> None:
        super().__init__(name, level, text, _COARSE, _LABELS)
        self._durations = durations

    def read(self) -> dict[Key, Distribution]:
        found: dict[Key, Distribution] = {}
        first = len(_FINE) + 1
        for (component, dry_run, *labels), values in self._durations.read().items():
            if not dry_run:
                counts = [sum(values.counts[:first]), *values.counts[first:]]
                found[component, *labels] = Distribution(counts, values.total)
        return found


class ApiServerMetrics:
    """The metrics that the server updates; those that are read at each scrape get their sources from the server."""

    def __init__(self, features: Features = Features(), build: BuildInfo = BuildInfo()) -> None:  # noqa: B008 - frozen
        registry = self._registry = Registry()
        self._requests: dict[RequestLabels, Requests] = {}
        add = registry.add
        # A table. Each row: name, stability level, help, buckets of a histogram, labels.
        # fmt: off

        # Requests
        requests = add(Counter("apiserver_request_total",
            STABLE, "Number of requests; watches count when they end.",
            "code component dry_run group resource scope subresource verb version"))
        requests.watch(self._counts)
        self._durations = add(Histogram("apiserver_request_duration_seconds",
            STABLE, "Duration of requests until the response is sent.", (*_FINE, *_COARSE),
            "component dry_run group resource scope subresource verb version"))
        add(_SliDurations("apiserver_request_sli_duration_seconds",
            ALPHA, "Duration of requests, without dry runs.", self._durations))
        self._sizes = add(Histogram("apiserver_response_sizes",
            STABLE, "Size of the responses to GET and LIST, in bytes.", _BYTES, _LABELS))
        self.in_flight = add(Gauge("apiserver_current_inflight_requests",
            STABLE, "Maximum number of simultaneous requests in the last second.", "request_kind"))

        # Watches
        self.long_running = add(Gauge("apiserver_longrunning_requests",
            STABLE, "Number of open watches.", _LABELS))
        self.watch_events = add(Counter("apiserver_watch_events_total",
            BETA, "Number of events sent to watches.", "group resource version"))

        # Storage
        self.storage_objects = add(Gauge("apiserver_storage_objects",
            STABLE, "Number of stored objects.", "resource"))
        self.resource_objects = add(Gauge("apiserver_resource_objects",
            ALPHA, "Number of stored objects.", "group resource"))
        self.resource_bytes = add(Gauge("apiserver_resource_size_estimate_bytes",
            ALPHA, "Size of the stored objects.", "group resource"))
        self.storage_bytes = add(Gauge("apiserver_storage_size_bytes",
            STABLE, "Size of the database file; objects in memory have none.", "storage_cluster_id"))

        # Admission and audit
        self.admission_steps = add(Histogram("apiserver_admission_step_admission_duration_seconds",
            STABLE, "Duration of admission: 'admit', which changes objects, and 'validate'.", _ADMISSION,
            "operation rejected type"))
        self.audit_events = add(Counter("apiserver_audit_event_total",
            ALPHA, "Number of events in the audit log."))
        self.audit_levels = add(Counter("apiserver_audit_level_total",
            ALPHA, "Number of events in the audit log, by level.", "level"))
        self.audit_errors = add(Counter("apiserver_audit_error_total",
            ALPHA, "Number of events that could not be written to the audit log.", "plugin"))
        # fmt: on
        self.work = WorkQueueMetrics(registry)
        add_process_metrics(registry)
        add_build_metrics(registry, build, features)

    def requests_with(self, labels: RequestLabels) -> Requests:
        """Return the requests with these labels."""
        found = self._requests.get(labels)
        if found is None:
            dry_run, *others = labels
            reads = labels.verb in ("GET", "LIST")
            sizes = self._sizes.of(COMPONENT, *others) if reads else None
            durations = self._durations.of(COMPONENT, dry_run, *others)
            found = self._requests[labels] = Requests(labels, durations, sizes)
        return found

    def _counts(self) -> dict[Key, float]:
        return {
            (str(code), COMPONENT, *labels): count
            for labels, requests in self._requests.items()
            for code, count in requests.codes.items()
        }

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics in the format for an Accept header, and its Content-Type."""
        return exposition.render(self._registry.families(), accept)

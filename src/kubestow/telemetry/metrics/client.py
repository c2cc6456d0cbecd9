"""The metrics of the API client: rest_client_..., leader_election_... and workqueue_..., fed where things happen."""

import math

from kubestow.telemetry.metrics.instruments import ALPHA, BETA, Counter, Gauge, Histogram, exponential_buckets
from kubestow.telemetry.metrics.registry import Registry

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_DAY = 86400
_AGES = (600, 1800, 3600, 14400, _DAY, *(days * _DAY for days in (7, 30, 90, 180, 360, 1440)))
_WORK = exponential_buckets(10e-9, 10, 10)


class ClientMetrics:
    """What the client counts of itself."""

    def __init__(self, registry: Registry | None = None) -> None:
        add = (Registry() if registry is None else registry).add
        # A table. Each row: name, stability level, help, buckets of a histogram, labels.
        # fmt: off

        # Requests
        self.requests = add(Counter("rest_client_requests_total",
            ALPHA, "How many HTTP requests were made.", "code host method"))
        self.request_retries = add(Counter("rest_client_request_retries_total",
            ALPHA, "How many requests were made again, by the answer that was the cause.", "code host verb"))
        self.request_seconds = add(Histogram("rest_client_request_duration_seconds",
            ALPHA, "How long requests took.", _SECONDS, "host verb"))
        self.request_bytes = add(Histogram("rest_client_request_size_bytes",
            ALPHA, "How large requests were.", _BYTES, "host verb"))
        self.response_bytes = add(Histogram("rest_client_response_size_bytes",
            ALPHA, "How large answers were.", _BYTES, "host verb"))
        self.rate_limiter_seconds = add(Histogram("rest_client_rate_limiter_duration_seconds",
            ALPHA, "How long requests waited for the client's own rate limit.", _SECONDS, "host verb"))

        # Credentials
        self.exec_plugin_calls = add(Counter("rest_client_exec_plugin_call_total",
            ALPHA, "How often a credential plugin was run, by exit code and what came of it.", "call_status code"))
        self.exec_plugin_rotation_age = add(Histogram("rest_client_exec_plugin_certificate_rotation_age",
            ALPHA, "How many seconds old credentials from a plugin were when they were replaced.", _AGES))
        self.exec_plugin_ttl = add(Gauge("rest_client_exec_plugin_ttl_seconds",
            ALPHA, "How many seconds credentials from a plugin are still good for, negative when expired, +Inf without "
            "such credentials or an end."))
        self.exec_plugin_ttl.set(math.inf)

        # Connections
        self.transports_created = add(Counter("rest_client_transport_create_calls_total",
            ALPHA, "How often a way to a server was asked for: a 'hit' was there, a 'miss' had to be made.", "result"))
        self.transports = add(Gauge("rest_client_transport_cache_entries", ALPHA, "How many ways to servers are kept."))
        # Nothing here is collected behind one's back: it stays 0.
        add(Counter("rest_client_transport_cert_rotation_gc_calls_total",
            ALPHA, "How often a way to a server with rotating certificates was garbage collected."))

        # Leader election
        self.leads = add(Gauge("leader_election_master_status",
            ALPHA, "Whether this instance leads, 1 or 0, by the name of the lease.", "name"))
        self.slow_renewals = add(Counter("leader_election_slowpath_total",
            ALPHA, "How often renewing a lease took more than one request, by the name of the lease.", "name"))

        # Queues of work, such as events to be sent
        self.work_adds = add(Counter("workqueue_adds_total", BETA, "How many items were added.", "name"))
        self.work_retries = add(Counter("workqueue_retries_total", BETA, "How many items were added again.", "name"))
        self.work_depth = add(Gauge("workqueue_depth", BETA, "How many items wait.", "name"))
        self.work_waited = add(Histogram("workqueue_queue_duration_seconds",
            BETA, "How long items waited to be worked on.", _WORK, "name"))
        self.work_seconds = add(Histogram("workqueue_work_duration_seconds",
            BETA, "How long items were worked on.", _WORK, "name"))
        self.work_unfinished = add(Gauge("workqueue_unfinished_work_seconds",
            BETA, "How long the items that are being worked on have been, all together. A value that keeps growing is "
            "work that hangs.", "name"))
        self.work_longest = add(Gauge("workqueue_longest_running_processor_seconds",
            BETA, "How long the item that has been worked on the longest has been.", "name"))

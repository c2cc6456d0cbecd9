"""The metrics of the API client: rest_client_..., leader_election_... and workqueue_..."""

import math

from kubestow.telemetry.metrics.instruments import ALPHA, NO_LEVEL, Counter, Gauge, Histogram
from kubestow.telemetry.metrics.registry import Registry
from kubestow.telemetry.metrics.work_queues import WorkQueueMetrics

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_LATENCIES = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_INFORMER = "group name resource version"
_DAY = 86400
_AGES = (600, 1800, 3600, 14400, _DAY, *(days * _DAY for days in (7, 30, 90, 180, 360, 1440)))


class ClientMetrics(WorkQueueMetrics):
    """The metrics that the API client updates, with those of its queue of events."""

    def __init__(self, registry: Registry | None = None) -> None:
        registry = Registry() if registry is None else registry
        super().__init__(registry)
        add = registry.add
        # A table. Each row: name, stability level, help, buckets of a histogram, labels.
        # fmt: off

        # Requests
        self.requests = add(Counter("rest_client_requests_total",
            ALPHA, "Number of HTTP requests.", "code host method"))
        self.request_retries = add(Counter("rest_client_request_retries_total",
            ALPHA, "Number of repeated requests, by the status code that was the cause.", "code host verb"))
        self.request_seconds = add(Histogram("rest_client_request_duration_seconds",
            ALPHA, "Duration of requests.", _SECONDS, "host verb"))
        self.request_bytes = add(Histogram("rest_client_request_size_bytes",
            ALPHA, "Size of requests.", _BYTES, "host verb"))
        self.response_bytes = add(Histogram("rest_client_response_size_bytes",
            ALPHA, "Size of responses.", _BYTES, "host verb"))
        self.rate_limiter_seconds = add(Histogram("rest_client_rate_limiter_duration_seconds",
            ALPHA, "Time that requests waited for the client's own rate limit.", _SECONDS, "host verb"))

        # Informers
        self.informer_queued = add(Gauge("informer_queued_items",
            ALPHA, "Number of received changes that wait to be processed: they are processed at once.", _INFORMER))
        self.informer_seconds = add(Histogram("informer_processing_latency_seconds",
            ALPHA, "Time to process the changes that were received together.", _LATENCIES, _INFORMER))
        self.informer_version = add(Gauge("informer_store_resource_version",
            ALPHA, "The last 15 digits of the resource version that the stored objects have.", _INFORMER))
        self.informer_unreadable = add(Gauge("kubestow_informer_unreadable",
            NO_LEVEL, "Whether the objects cannot be read, as their kind is missing or access is denied: 1, else 0.",
            _INFORMER))
        self.informer_undecodable = add(Gauge("kubestow_informer_undecodable_objects",
            NO_LEVEL, "Number of objects that are ignored, or used in their previous version: they cannot be decoded.",
            _INFORMER))

        # Credentials
        self.exec_plugin_calls = add(Counter("rest_client_exec_plugin_call_total",
            ALPHA, "Number of runs of credential plugins, by exit code and result.", "call_status code"))
        self.exec_plugin_rotation_age = add(Histogram("rest_client_exec_plugin_certificate_rotation_age",
            ALPHA, "Age in seconds of a plugin's credentials when they were replaced.", _AGES))
        self.exec_plugin_ttl = add(Gauge("rest_client_exec_plugin_ttl_seconds",
            ALPHA, "Seconds until a plugin's credentials expire: negative after that, +Inf if they do not expire or no "
            "plugin is used."))
        self.exec_plugin_ttl.set(math.inf)

        # Connections
        self.transports_created = add(Counter("rest_client_transport_create_calls_total",
            ALPHA, "Number of lookups of a transport: 'hit' for an existing one, 'miss' for a new one.", "result"))
        self.transports = add(Gauge("rest_client_transport_cache_entries", ALPHA, "Number of cached transports."))
        # Transports are closed explicitly, never by the garbage collector: it stays 0.
        add(Counter("rest_client_transport_cert_rotation_gc_calls_total",
            ALPHA, "Number of transports with rotating certificates that were garbage collected."))

        # Leader election
        self.leads = add(Gauge("leader_election_master_status",
            ALPHA, "Whether this instance is the leader (1) or not (0), by the name of the lease.", "name"))
        self.slow_renewals = add(Counter("leader_election_slowpath_total",
            ALPHA, "Number of renewals that took more than one request, by the name of the lease.", "name"))

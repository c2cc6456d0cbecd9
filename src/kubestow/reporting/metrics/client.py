"""The API client: its requests, its credentials, its connections."""

import math
from collections.abc import Callable

from kubestow.reporting.metrics.instruments import ALPHA, Counter, Gauge, Histogram
from kubestow.reporting.metrics.registry import Registry

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_DAY = 86400
_AGES = (600, 1800, 3600, 14400, _DAY, *(days * _DAY for days in (7, 30, 90, 180, 360, 1440)))


class RequestMetrics:
    """Observes requests."""

    def __init__(self, registry: Registry) -> None:
        add = registry.add
        self._requests = add(
            Counter("rest_client_requests_total", ALPHA, "How many HTTP requests were made.", "code host method")
        )
        self._retries = add(
            Counter(
                "rest_client_request_retries_total",
                ALPHA,
                "How many requests were made again, by the answer that was the cause.",
                "code host verb",
            )
        )
        self._seconds = add(
            Histogram("rest_client_request_duration_seconds", ALPHA, "How long requests took.", _SECONDS, "host verb")
        )
        self._sent = add(
            Histogram("rest_client_request_size_bytes", ALPHA, "How large requests were.", _BYTES, "host verb")
        )
        self._received = add(
            Histogram("rest_client_response_size_bytes", ALPHA, "How large answers were.", _BYTES, "host verb")
        )
        self._limited = add(
            Histogram(
                "rest_client_rate_limiter_duration_seconds",
                ALPHA,
                "How long requests waited for the client's own rate limit.",
                _SECONDS,
                "host verb",
            )
        )

    def request_done(
        self, verb: str, host: str, code: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        self._requests.inc(code, host, verb)
        self._seconds.observe(seconds, host, verb)
        self._sent.observe(request_bytes, host, verb)
        self._received.observe(response_bytes, host, verb)

    def request_retried(self, verb: str, host: str, code: str) -> None:
        self._retries.inc(code, host, verb)

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        self._limited.observe(seconds, host, verb)


class CredentialMetrics:
    """Observes credential plugins. What they deliver has an age when it is replaced, and a time left until then."""

    def __init__(self, registry: Registry, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self._obtained: float | None = None
        self._expires = math.inf
        self._calls = registry.add(
            Counter(
                "rest_client_exec_plugin_call_total",
                ALPHA,
                "How often a credential plugin was run, by exit code and what came of it.",
                "call_status code",
            )
        )
        self._ages = registry.add(
            Histogram(
                "rest_client_exec_plugin_certificate_rotation_age",
                ALPHA,
                "How many seconds old credentials from a plugin were when they were replaced.",
                _AGES,
            )
        )
        registry.add(
            Gauge(
                "rest_client_exec_plugin_ttl_seconds",
                ALPHA,
                "How many seconds credentials from a plugin are still good for, negative when expired, +Inf without "
                "such credentials or an end.",
            )
        ).watch(lambda: {(): self._expires - self._now()})

    def plugin_called(self, succeeded: bool, expires_in: float | None) -> None:
        if not succeeded:
            self._calls.inc("plugin_execution_error", "1")
            return
        self._calls.inc("no_error", "0")
        now = self._now()
        if self._obtained is not None:
            self._ages.observe(now - self._obtained)
        self._obtained = now
        self._expires = math.inf if expires_in is None else now + expires_in


class TransportMetrics:
    """Is told when ways to a server are made. Nothing here is collected behind one's back: that count stays 0."""

    def __init__(self, registry: Registry) -> None:
        self._created = registry.add(
            Counter(
                "rest_client_transport_create_calls_total",
                ALPHA,
                "How often a way to a server was asked for: a 'hit' was there, a 'miss' had to be made.",
                "result",
            )
        )
        self._entries = registry.add(
            Gauge("rest_client_transport_cache_entries", ALPHA, "How many ways to servers are kept.")
        )
        registry.add(
            Counter(
                "rest_client_transport_cert_rotation_gc_calls_total",
                ALPHA,
                "How often a way to a server with rotating certificates was garbage collected.",
            )
        )

    def transport_created(self, *, cached: bool) -> None:
        self._created.inc("hit" if cached else "miss")

    def watch_transports(self, count: Callable[[], int]) -> None:
        """Take the number of ways to servers from here."""
        self._entries.watch(lambda: {(): count()})

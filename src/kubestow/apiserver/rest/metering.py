"""Metrics of the server: requests are counted as they are answered, everything else is read at each scrape.

The labels of a request follow from its path, method and options; the requests with the same ones share a counter, which
is found by those parts, so that a request costs about half a microsecond.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.rest.auditing import LEVEL, AuditLog
from kubestow.apiserver.rest.bodies import APPLY_PATCH, media_type
from kubestow.apiserver.rest.paths import Target
from kubestow.apiserver.rest.reading import is_true
from kubestow.apiserver.rest.watching import Watchers
from kubestow.apiserver.store.store import Store
from kubestow.server.http.messages import Request, Response
from kubestow.telemetry.metrics.apiserver import COMPONENT, ApiServerMetrics, RequestLabels, Requests

_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE"))
_CONNECTS = frozenset(("log", "exec", "attach", "portforward"))
_HEALTH = frozenset(("/healthz", "/livez", "/readyz"))
_Parts = tuple[str, str, str, str, str, str]
"""Method, apiVersion and plural name of the resource, subresource or path, scope, and the option of `_option`."""


class InFlight:
    """The requests of one kind in progress. A request that is answered at once is never in progress at a scrape."""

    def __init__(self) -> None:
        self._count = self._peak = self._peak_before = 0
        self._second = 0

    def enter(self) -> None:
        """Begin a request."""
        self._count += 1
        self._turn()
        self._peak = max(self._peak, self._count)

    def leave(self) -> None:
        """End a request."""
        self._turn()
        self._count -= 1

    def _turn(self) -> None:
        second = int(perf_counter())
        if second != self._second:
            self._peak_before = self._peak if second == self._second + 1 else self._count
            self._second, self._peak = second, self._count

    def peak(self) -> int:
        """Return the maximum of this second and the one before."""
        self._turn()
        return max(self._peak, self._peak_before)


class Meter:
    """Records requests; its metrics read the state of the server."""

    def __init__(self, metrics: ApiServerMetrics, store: Store, watchers: Watchers) -> None:
        self.metrics = metrics
        self._known: dict[_Parts, Requests] = {}
        self.read_only, self.mutating = InFlight(), InFlight()
        self._open: Counter[RequestLabels] = Counter()
        """The number of open watches."""
        # The scrape itself is a request in progress.
        metrics.in_flight.track(lambda: max(1, self.read_only.peak()), "readOnly")
        metrics.in_flight.track(self.mutating.peak, "mutating")
        metrics.long_running.watch(
            lambda: {(COMPONENT, *labels[1:]): count for labels, count in self._open.items() if count}
        )
        metrics.watch_events.watch(watchers.events)
        metrics.storage_objects.watch(
            lambda: {(one.resource.storage,): len(one.objects) for one in store.collections.values()}
        )
        metrics.resource_objects.watch(
            lambda: {_group_resource(one.resource): len(one.objects) for one in store.collections.values()}
        )
        metrics.resource_bytes.watch(
            lambda: {
                _group_resource(one.resource): sum(len(record.body) for record in one.objects.values())
                for one in store.collections.values()
            }
        )

    def watch_storage(self, path: Path) -> None:
        """Report the size of the database file."""
        self.metrics.storage_bytes.track(lambda: path.stat().st_size, "etcd-0")

    def watch_audit(self, audit: AuditLog) -> None:
        """Report the events of an audit log."""
        self.metrics.audit_events.watch(lambda: {(): audit.recorded})
        self.metrics.audit_levels.watch(lambda: {(LEVEL,): audit.recorded})
        self.metrics.audit_errors.watch(lambda: {("log",): audit.failed})

    def record(self, request: Request, target: Target | None, response: Response, started: float) -> None:
        """Record a request that has been answered; `started` is a time of `perf_counter`."""
        self._requests(request, target).record(response.status, perf_counter() - started, len(response.body))

    def open_watch(self, request: Request, target: Target, started: float) -> Callable[[], None]:
        """Record a watch that was opened; return the function to call when it is closed."""
        requests = self._requests(request, target)
        labels = requests.labels
        self._open[labels] += 1

        def close() -> None:
            self._open[labels] -= 1
            requests.record(200, perf_counter() - started, 0)

        return close

    def _requests(self, request: Request, target: Target | None) -> Requests:
        method = request.method
        option = _option(request) if request.raw_query or method == "PATCH" else ""
        parts: _Parts
        if target is None:
            path = request.raw_path.decode("latin-1")
            parts = (method, "", "", path if path in _HEALTH else "", "", option)
        else:
            scope = "cluster" if target.namespace is None else "namespace"
            if target.name or method == "POST":
                scope = "resource"
            parts = (method, target.resource.api_version, target.resource.plural, target.sub, scope, option)
        known = self._known.get(parts)
        if known is None:
            known = self._known[parts] = self.metrics.requests_with(_labels(*parts))
        return known


def _option(request: Request) -> str:
    """Return the part of the labels that query and body determine: the verb WATCH or APPLY, and the dry run."""
    verb = ""
    try:
        query = request.query
        if request.method in ("GET", "HEAD") and is_true(query, "watch"):
            verb = "WATCH"
        elif request.method == "PATCH" and media_type(request) == APPLY_PATCH:
            verb = "APPLY"
        dry_run = query.get("dryRun", "")
    except ApiError:
        return verb
    return f"{verb} {dry_run if dry_run in ('', 'All') else 'invalid'}".rstrip()


def _labels(method: str, api_version: str, plural: str, sub: str, scope: str, option: str) -> RequestLabels:
    verb, _, dry_run = option.partition(" ")
    if not verb:
        verb = "GET" if method == "HEAD" else method if method in _METHODS else "other"
        if verb == "GET" and scope in ("cluster", "namespace"):
            verb = "LIST"
    if sub in _CONNECTS:
        verb = "CONNECT"
    group, _, version = api_version.rpartition("/")
    return RequestLabels(dry_run, group, plural, scope, sub, verb, version)


def _group_resource(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural

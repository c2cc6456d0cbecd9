"""The pages of the scheduler by path."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

import msgspec
import yaml
from msgspec.structs import asdict

from kubestow import config
from kubestow.api.pod import Pod
from kubestow.config import Features, SchedulerConfiguration
from kubestow.server import zpages
from kubestow.server.health import TEXT, Check, HealthPage, metrics_page
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request, Response
from kubestow.server.resource_metrics import ResourceMetrics
from kubestow.telemetry.build import BuildInfo
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.secrets import redact_text

Stream = Callable[[Connection], None]
"""Writes a response of unlimited length to a connection."""
DECISIONS = "/debug/decisions"
PROFILING = "/debug/pprof"
_UNLISTED = ("/statusz", "/version")
"""Paths that kube-scheduler does not list in /statusz."""
Answer = Response | Stream | Awaitable[Response]
Page = Callable[[Request], Answer]
"""Returns the response to a request."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The content of the pages."""

    configuration: Callable[[], SchedulerConfiguration]
    """Returns the current configuration."""
    features: Features
    flags: Mapping[str, str]
    metrics: Metrics
    health_checks: tuple[Check, ...]
    ready_checks: tuple[Check, ...]
    set_verbosity: Callable[[int], None]
    pods: Callable[[], Iterable[Pod]]
    """Returns all pods, also those of other schedulers."""
    leads: Callable[[], bool]
    below: Mapping[str, Page] = field(default_factory=dict)
    """Additional pages by path; each serves its path and all paths below it."""
    posts: Mapping[str, Page] = field(default_factory=dict)
    """Additional pages for POST, by path."""


class Pages:
    """All pages, for GET and HEAD; some paths also accept PUT or POST."""

    def __init__(self, subject: Subject, now: Callable[[], float] = time.time) -> None:
        self._subject = subject
        self._now = now
        self._started = now()
        resources = ResourceMetrics(subject.pods, subject.leads)
        self._subtrees: dict[str, Page] = {DECISIONS: _no_decisions, **subject.below}
        self._pages: dict[str, Page] = {
            "/configz": lambda _: Response(200, self._configz()),
            "/metrics": partial(metrics_page, subject.metrics.render),
            "/metrics/resources": partial(metrics_page, resources.render),
            "/metrics/slis": partial(metrics_page, subject.metrics.health.render),
            "/version": lambda _: Response(200, _version()),
        }
        self._put_pages: dict[str, Page] = {}
        for page in (
            HealthPage("healthz", subject.health_checks, subject.metrics.health),
            HealthPage("livez", (), subject.metrics.health),
            HealthPage("readyz", subject.ready_checks, subject.metrics.health),
        ):
            self._pages |= page.pages()
        serves_cbor = self._serves_cbor = subject.features.cbor_serving_and_storage
        if subject.features.component_flagz:
            self._pages["/flagz"] = lambda request: zpages.flagz(request, subject.flags, serves_cbor=serves_cbor)
        if subject.features.component_statusz:
            self._pages["/statusz"] = self._statusz
        if subject.configuration().enableProfiling:
            self._put_pages["/debug/flags/v"] = self._set_verbosity
            self._subtrees[PROFILING] = lambda request: self._profiling(request)

    @property
    def paths(self) -> list[str]:
        """Every path that is served."""
        return sorted(self._pages.keys() | self._put_pages.keys() | self._subtrees.keys())

    def answer(self, request: Request) -> Answer:
        """Return the response to a request. Raises ApiError if there is no page for its path and method."""
        path = request.path
        if request.method in ("GET", "HEAD"):
            page = self._pages.get(path) or self._page_above(path)
        elif request.method == "PUT":
            page = self._put_pages.get(path)
        elif request.method == "POST":
            page = self._subject.posts.get(path)
        else:
            page = None
        if page is not None:
            return page(request)
        if path in self._pages or path in self._put_pages or self._page_above(path) is not None:
            message = f"the server does not allow the method {request.method} on {path}"
            raise ApiError(405, "MethodNotAllowed", message)
        raise ApiError(404, "NotFound", f"there is no page {path}; there are: {' '.join(self.paths)}")

    def _page_above(self, path: str) -> Page | None:
        for above, page in self._subtrees.items():
            if path == above or path.startswith(f"{above}/"):
                return page
        return None

    def _configz(self) -> bytes:
        return msgspec.json.encode(
            {"componentconfig": yaml.safe_load(redact_text(config.dump(self._subject.configuration())))}
        )

    def _statusz(self, request: Request) -> Response:
        listed = sorted(path for path in self._pages if path.count("/") == 1 and path not in _UNLISTED)
        emulated = f"1.{self._subject.features.versions.emulated}"
        return zpages.statusz(request, self._started, self._now(), listed, emulated, serves_cbor=self._serves_cbor)

    @cached_property
    def _profiling(self) -> Page:
        # Imported on demand: rarely used.
        from kubestow.server.profiling import Profiling

        return Profiling().answer

    def _set_verbosity(self, request: Request) -> Response:
        text = request.body.decode("ascii", "replace").strip()
        if not text.isdecimal() or len(text) > 9:
            raise ApiError(400, "BadRequest", f"the body must be a number such as 4, not {text[:20]!r}")
        self._subject.set_verbosity(int(text))
        return Response(200, f"successfully set the verbosity of logs to {text}".encode(), content_type=TEXT)


def _no_decisions(_: Request) -> Response:
    raise ApiError(
        404, "NotFound", "decision records are disabled; --decision-records-bytes of kubestow scheduler enables them"
    )


def _version() -> bytes:
    build = BuildInfo()
    named = {_camel(key): value for key, value in asdict(build).items()}
    return msgspec.json.encode({"major": build.major, "minor": build.minor, **named})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)

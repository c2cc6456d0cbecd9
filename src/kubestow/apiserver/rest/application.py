"""The request handler: authenticate, parse the path, authorize, run the verb; every error becomes a Status."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

from msgspec.structs import replace

from kubestow.apiserver import errors
from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.auth import impersonation
from kubestow.apiserver.auth.identities import Identities, by_certificate
from kubestow.apiserver.auth.policy import Attempt, Authorizer, FixedPolicy, denial
from kubestow.apiserver.custom.serving import CustomKinds
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kinds.subresources import SUBRESOURCES
from kubestow.apiserver.objects.intent import ANONYMOUS, MASTERS, Intent, User
from kubestow.apiserver.objects.writing import check
from kubestow.apiserver.rest import bodies, discovery, paths, reading, reviews, views
from kubestow.apiserver.rest.auditing import AuditLog
from kubestow.apiserver.rest.discovery import Discovery
from kubestow.apiserver.rest.metering import Meter
from kubestow.apiserver.rest.mutating import Mutations, intent_of
from kubestow.apiserver.rest.paths import Target
from kubestow.apiserver.rest.subresources import Subresources
from kubestow.apiserver.rest.views import OBJECT, negotiate_form
from kubestow.apiserver.rest.watching import Watchers
from kubestow.apiserver.schema.openapi import IN_PROTOBUF, PROTOBUF, OpenApi
from kubestow.apiserver.store.records import Record, encode
from kubestow.apiserver.store.store import Store
from kubestow.server.health import PING, Check, HealthPage, metrics_page
from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request, Response
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.apiserver import ApiServerMetrics
from kubestow.telemetry.metrics.health import HealthMetrics

log = get_logger(__name__)

_IMPERSONATE = impersonation.PREFIX
_PATHS = (
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
)


class Application:
    """Handles the requests to a store."""

    def __init__(
        self,
        store: Store,
        identities: Identities,
        watchers: Watchers,
        admission: Admission | None = None,
        audit: AuditLog | None = None,
        authorizer: Authorizer | None = None,
        metrics: ApiServerMetrics | None = None,
    ) -> None:
        self.store = store
        self._authorizer = authorizer or FixedPolicy(store.registry)
        self.registry = store.registry
        self.audit = audit
        self.identities = identities
        self.watchers = watchers
        self.mutations = Mutations(store, admission)
        self.subresources = Subresources(self.mutations.writer, self.mutations.remover, identities)
        self.custom_kinds = CustomKinds(self.mutations.writer, self.mutations.remover)
        self.discovery = Discovery(self.registry)
        self.openapi = OpenApi(self.registry)
        self.unhealthy: Callable[[], str | None] = lambda: None
        checks = (PING, Check("etcd", lambda: self.unhealthy()))
        metrics, health = metrics or ApiServerMetrics(), HealthMetrics()
        self.meter = Meter(metrics, store, watchers)
        self._pages: dict[str, Callable[[Request], Response]] = {
            "/metrics": partial(metrics_page, metrics.render),
            "/metrics/slis": partial(metrics_page, health.render),
        }
        for name in ("healthz", "livez", "readyz"):
            self._pages |= HealthPage(name, checks, health).pages()

    def __call__(self, request: Request, connection: Connection) -> None:
        """Handle a request; respond on the connection once the state that the response shows is durable."""
        started = perf_counter()
        target: Target | None = None
        try:
            target = paths.parse(request.path, self.registry)
            request.user = self._authenticate(request, connection)
            response = self._answer(request, connection, target, started)
        except Exception as error:
            response = _failure_of(error, request)
        if self.audit is not None and target is not None:
            self.audit.record(request, target, response)
        if response is None:
            return
        store = self.store
        if store.durable_rv == store.rv or response.status >= 500:
            connection.respond(response)
            self.meter.record(request, target, response, started)
        else:
            self._respond_later(request, connection, target, response, started)

    def _respond_later(
        self, request: Request, connection: Connection, target: Target | None, response: Response, started: float
    ) -> None:
        """Respond when the state that the response shows is durable; with an error if it cannot be made durable."""
        in_flight = self.meter.read_only if request.method in ("GET", "HEAD") else self.meter.mutating
        in_flight.enter()

        def respond(actual: Response) -> None:
            in_flight.leave()
            connection.respond(actual)
            self.meter.record(request, target, actual, started)

        self.store.when_durable(self.store.rv, lambda: respond(response), lambda: respond(self._not_durable()))

    def _not_durable(self) -> Response:
        return _failure(errors.internal(self.unhealthy() or "the write is not durable"))

    def _authenticate(self, request: Request, connection: Connection) -> User:
        """Return the user of the token, else of the certificate; raise ApiError if the token is invalid."""
        header = request.headers.get(b"authorization")
        if header is not None and (user := self.identities.by_header(header)) is not None:
            return user
        if connection.identity is None:
            connection.identity = by_certificate(connection.peer_certificate) or ANONYMOUS
        identity: User = connection.identity
        return identity

    def _answer(
        self, request: Request, connection: Connection, target: Target | None, started: float
    ) -> Response | None:
        self._authorize(request, target)
        if target is None:
            return self._answer_non_resource(request)
        reads = request.method in ("GET", "HEAD")
        warnings = [target.resource.deprecation] if target.resource.deprecation else []
        response: Response | None
        if reads and target.resource.stored and target.sub not in self.subresources.actions:
            response = self._read(request, connection, target, started)
        else:
            failure = None if reads else self.unhealthy()
            if failure:
                raise errors.internal(failure)
            intent = intent_of(request)
            response = self._write(request, target, intent)
            warnings += intent.warnings
        if warnings and response is not None:
            headers = tuple(("Warning", f'299 - "{_quoted(text)}"') for text in warnings[:20])
            response = replace(response, headers=headers)
        return response

    def _authorize(self, request: Request, target: Target | None) -> None:
        """Replace the user by the one that the request impersonates; raise ApiError if the user may not send it."""
        for name in request.headers:
            if name.startswith(_IMPERSONATE):
                attempt = _attempt(request, target)
                found = impersonation.resolve(request.headers, request.user, attempt, self._authorizer)
                if found is not None:
                    request.impersonation = found
                    request.user = found.user
                break
        self._require(request, target)

    def _require(self, request: Request, target: Target | None, verb: str = "") -> None:
        """Raise ApiError if the user may not do what a request does, or something else: `verb`."""
        user: User = request.user
        if MASTERS in user.groups:
            return
        attempt = _attempt(request, target, verb)
        if not self._authorizer.allowed(user, attempt):
            raise denial(user, attempt)

    def _read(self, request: Request, connection: Connection, target: Target, started: float) -> Response | None:
        resource, query = target.resource, request.query
        form = negotiate_form(request.header(b"accept"))
        if target.sub and "get" not in SUBRESOURCES[target.sub].verbs:
            raise errors.method_not_allowed(request.method)
        if paths.verb_of(request, target) == "watch":
            self._open_watch(request, connection, target, form, started)
            return None
        if target.name:
            record = reading.get(self.store, resource, target.namespace or "", target.name)
            return Response(200, views.single(resource, record, form))
        chosen = reading.selection(resource, target.namespace, "", query)
        page = reading.list_page(self.store, resource, chosen, query)
        include = query.get("includeObject", "Metadata")
        return Response(200, views.listing(resource, page.records, page.metadata, form, include))

    def _open_watch(self, request: Request, connection: Connection, target: Target, form: str, started: float) -> None:
        resource = target.resource
        chosen = reading.selection(resource, target.namespace, target.name, request.query)

        def respond(failure: Response) -> None:
            connection.respond(failure)
            self.meter.record(request, target, failure, started)

        def begin() -> None:
            opened = partial(self.meter.open_watch, request, target, started)
            try:
                self.watchers.open(request, connection, resource, chosen, form, opened)
            except Exception as error:
                respond(_failure_of(error, request))

        self.store.when_durable(self.store.rv, begin, lambda: respond(self._not_durable()))

    def _write(self, request: Request, target: Target, intent: Intent) -> Response:
        method, resource = request.method, target.resource
        form = negotiate_form(request.header(b"accept"))
        if target.sub:
            verbs = SUBRESOURCES[target.sub].verbs
            if paths.VERBS.get(method, "get") not in verbs:
                raise errors.method_not_allowed(method)
            action = self.subresources.actions.get(target.sub)
            if action is not None:
                return action(request, target, intent)
        if not resource.stored:
            if method != "POST" or target.name or resource.namespaced != bool(target.namespace):
                raise errors.method_not_allowed(method)
            return self._answer_unstored(request, target, intent)
        if method == "POST" and not target.name:
            if resource.namespaced and target.namespace is None:
                raise errors.method_not_allowed(method)
            return Response(201, views.single(resource, self.mutations.create(request, target, intent), form))
        if method == "PUT" and target.name:
            return Response(200, views.single(resource, self.mutations.replace(request, target, intent), form))
        if method == "PATCH" and target.name:
            require_create = partial(self._require, request, target, "create")
            record, created = self.mutations.patch(request, target, intent, require_create)
            return Response(201 if created else 200, views.single(resource, record, form))
        if method == "DELETE" and not target.sub:
            if target.name:
                record, deleted = self.mutations.delete(request, target, intent)
                return Response(200, _deleted(target, record, deleted, form))
            if resource.namespaced and target.namespace is None:
                raise errors.method_not_allowed(method)
            page = self.mutations.delete_collection(request, target, intent)
            return Response(200, views.listing(resource, page.records, page.metadata, form, "Metadata"))
        raise errors.method_not_allowed(method)

    def _answer_unstored(self, request: Request, target: Target, intent: Intent) -> Response:
        """Respond to a kind that is never stored: a review, or a Binding outside the path of a pod."""
        if negotiate_form(request.header(b"accept")) != OBJECT:
            raise errors.not_acceptable()
        if target.resource.kind == "Binding":
            return self.subresources.bind(request, target, intent)
        review = bodies.read_object(request)
        bodies.require_kind(review, target.resource.api_version, target.resource.kind)
        causes = check(target.resource, review, intent)
        causes += reviews.validate(target.resource.kind, review, target.namespace or "")
        if causes:
            raise errors.invalid(target.resource.group, target.resource.kind, "", causes)
        answered = reviews.answer(
            target.resource, review, request.user, self.identities, self._authorizer, self.store.now()
        )
        return Response(201, encode(answered))

    def _answer_non_resource(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        parts = path.strip("/").split("/")
        if request.method not in ("GET", "HEAD"):
            raise errors.no_such_path() if parts[0] in ("api", "apis") else errors.method_not_allowed(request.method)
        page = self._pages.get(request.path)
        if page is not None:
            return page(request)
        if path == "/openapi/v2" and "json" not in (accept := request.header(b"accept")) and "protobuf" in accept:
            return Response(200, IN_PROTOBUF, content_type=PROTOBUF)
        aggregated = len(parts) == 1 and discovery.wants_aggregated(request.header(b"accept"))
        document = self._document(path, parts, aggregated)
        if document is None:
            raise errors.no_such_path()
        if parts[0] in ("api", "apis") and aggregated:
            return Response(200, document, content_type=discovery.AGGREGATED)
        return Response(200, document)

    def _document(self, path: str, parts: list[str], aggregated: bool) -> bytes | None:
        """Return a discovery or OpenAPI document; None if there is none at this path."""
        if parts[0] in ("api", "apis"):
            return self.discovery.answer(parts, aggregated)
        if path == "/version":
            return encode(discovery.VERSION)
        if path == "/openapi/v2":
            return self.openapi.version_two()
        if path == "/openapi/v3":
            return self.openapi.index()
        if path.startswith("/openapi/v3/"):
            return self.openapi.document(path.removeprefix("/openapi/v3/"))
        if path == "/":
            return encode({"paths": _PATHS})
        return None


def _attempt(request: Request, target: Target | None, verb: str = "") -> Attempt:
    """Return what a request does, for authorization; `verb` replaces its own."""
    if target is None:
        return Attempt(request.method.lower(), "", request.path)
    resource = target.resource
    name = f"{resource.plural}/{target.sub}" if target.sub else resource.plural
    return Attempt(
        verb or paths.verb_of(request, target), name, "", resource.group, target.namespace or "", target.name
    )


def _failure_of(error: Exception, request: Request) -> Response:
    """Return the response to a request that failed; an error that is not for clients is logged."""
    if isinstance(error, ApiError):
        return _failure(error)
    log.unexpected("Request failed", err=error, method=request.method, path=request.raw_path.decode("latin-1"))
    return _failure(errors.internal(f"{type(error).__name__}; see the server's log"))


def _failure(error: ApiError) -> Response:
    return Response(error.code, encode(error.status()), headers=error.headers)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")


def _deleted(target: Target, record: Record, deleted: bool, form: str) -> bytes:
    resource = target.resource
    if not deleted or resource.storage == "pods":
        return views.single(resource, record, form)
    details = {"name": record.name, "group": resource.group, "kind": resource.plural, "uid": record.uid}
    if not resource.group:
        del details["group"]
    return encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

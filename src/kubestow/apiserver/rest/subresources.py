"""Subresources that are actions rather than a part of an object; one method implements each."""

from collections.abc import Callable
from typing import Any

from kubestow.apiserver import errors
from kubestow.apiserver.admission.writes import Write
from kubestow.apiserver.auth.identities import Identities
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.binding import bind
from kubestow.apiserver.objects.eviction import evict
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.removal import Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.patches import json_patch, merge_patch
from kubestow.apiserver.printing import cells
from kubestow.apiserver.rest import bodies, reading, tokens
from kubestow.apiserver.rest.paths import Target
from kubestow.apiserver.rules.causes import invalid
from kubestow.apiserver.schema.reader import struct_named
from kubestow.apiserver.schema.types import Report
from kubestow.apiserver.store.records import Record, encode
from kubestow.server.http.messages import Request, Response

Object = dict[str, Any]
Action = Callable[[Request, Target, Intent], Response]
_NO_CONTAINERS = "pods are simulated and run no containers: log, exec, attach and portforward are not supported"
_SUCCESS = Response(201, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}')


def _require_valid(document: Object, group: str, kind: str) -> None:
    report = Report()
    struct_named(group, kind).check(document, "", report)
    problems = [f"{path}: {what}" for path, what in report.wrong]
    problems += [f"{path}: {what}" for path, _, what in report.invalid]
    if problems:
        raise errors.bad_request(f"{kind}: {'; '.join(problems)}")


class Subresources:
    """Actions on objects, by the name of the subresource."""

    def __init__(self, writer: Writer, remover: Remover, identities: Identities) -> None:
        self.store = writer.store
        self.writer = writer
        self.remover = remover
        self.identities = identities
        self.actions: dict[str, Action] = {
            "binding": self.bind,
            "eviction": self.evict,
            "scale": self.scale,
            "token": self.token,
            **dict.fromkeys(("log", "exec", "attach", "portforward"), self.refuse),
        }

    def refuse(self, _request: Request, _target: Target, _intent: Intent) -> Response:
        """Raise ApiError: pods have no containers to connect to."""
        raise errors.not_implemented(_NO_CONTAINERS)

    def bind(self, request: Request, target: Target, intent: Intent) -> Response:
        """Bind a pod to a node."""
        document = bodies.read_object(request)
        bodies.require_kind(document, "v1", "Binding")
        _require_valid(document, "core.v1", "Binding")
        name = document.get("metadata", {}).get("name", "")
        _require_same_name(target, name, "Binding")
        self._review("CREATE", target, document, None, intent)
        bind(self.store, target.namespace or "", name, document, intent)
        return _SUCCESS

    def evict(self, request: Request, target: Target, intent: Intent) -> Response:
        """Evict a pod if its disruption budgets allow it."""
        document = bodies.read_object(request)
        bodies.require_kind(document, "policy/v1", "Eviction")
        _require_valid(document, "policy.v1", "Eviction")
        _require_same_name(target, document.get("metadata", {}).get("name", ""), "Eviction")
        self._review("CREATE", target, document, None, intent)
        options = document.get("deleteOptions")
        evict(self.remover, target.namespace or "", target.name, options, request.query, intent)
        return _SUCCESS

    def _review(self, operation: str, target: Target, new: Object, old: Object | None, intent: Intent) -> None:
        """Run the admission policies on the body of a subresource request."""
        metadata = new.setdefault("metadata", {})
        metadata.setdefault("namespace", target.namespace or "")
        metadata.setdefault("name", target.name)
        self.writer.admission.review(Write(operation, target.resource, new, old, intent, target.sub))

    def token(self, request: Request, target: Target, intent: Intent) -> Response:  # noqa: ARG002
        """Issue a token for a service account."""
        account = reading.get(self.store, target.resource, target.namespace or "", target.name)
        document = bodies.read_object(request)
        _require_valid(document, "authentication.v1", "TokenRequest")
        return Response(201, encode(tokens.issue(self.store, self.identities, account, document)))

    def scale(self, request: Request, target: Target, intent: Intent) -> Response:
        """Return the Scale of a workload, after writing it in the case of an update or a patch."""
        resource = target.resource
        record = reading.get(self.store, resource, target.namespace or "", target.name)
        current = _scale(resource, record)
        if request.method in ("GET", "HEAD"):
            return Response(200, encode(current))
        if request.method == "PUT":
            wanted = bodies.read_object(request)
            bodies.require_kind(wanted, "autoscaling/v1", "Scale")
        else:
            media = bodies.media_type(request)
            patch = bodies.read_json(request.body)
            if media == bodies.JSON_PATCH:
                wanted = json_patch.apply(current, patch)
            elif media in (bodies.MERGE_PATCH, bodies.STRATEGIC_PATCH):
                wanted = merge_patch.apply(current, patch)
            else:
                raise errors.unsupported_media_type(media, (bodies.JSON_PATCH, bodies.MERGE_PATCH))
        _require_valid(wanted, "autoscaling.v1", "Scale")
        replicas = wanted.get("spec", {}).get("replicas", 0)
        if replicas < 0:
            cause = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise errors.invalid("autoscaling", "Scale", target.name, [cause])

        def change(obj: Object) -> Object:
            inner = obj
            for key in resource.scale.wanted[:-1]:
                inner = inner.setdefault(key, {})
            inner[resource.scale.wanted[-1]] = replicas
            version = wanted.get("metadata", {}).get("resourceVersion")
            if version:
                obj["metadata"]["resourceVersion"] = version
            return obj

        self._review("UPDATE", target, wanted, _scale(resource, record), intent)
        updated = self.writer.update(
            resource, target.namespace or "", target.name, change, intent, sub="scale", reviewed=True
        )
        return Response(200, encode(_scale(resource, updated)))


def _require_same_name(target: Target, name: str, kind: str) -> None:
    """Raise ApiError if an action on a pod names another pod than the path of its request."""
    if target.name and name != target.name:
        raise errors.bad_request(f"name in URL does not match name in {kind} object")


def _scale(resource: Resource, record: Record) -> Object:
    obj = record.object()
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _number(obj, resource.scale.present)}
    selector = _at(obj, resource.scale.selector)
    if isinstance(selector, dict):
        plain = resource.kind == "ReplicationController"
        selector = cells.plain_selector(selector) if plain else cells.selector(selector)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in kept if key in obj["metadata"]},
        "spec": {"replicas": _number(obj, resource.scale.wanted)},
        "status": status,
    }


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _number(obj: Object, path: tuple[str, ...]) -> int:
    found = _at(obj, path)
    return found if type(found) is int else 0

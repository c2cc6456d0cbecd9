"""Resource paths: /api/v1/... and /apis/GROUP/VERSION/..., with or without a namespace."""

from dataclasses import dataclass

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.resources import BY_STORAGE, Registry
from kubestow.apiserver.rest.reading import is_true
from kubestow.server.http.messages import Request

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = BY_STORAGE["namespaces"].subresources


@dataclass(slots=True, frozen=True)
class Target:
    """The resource, object or subresource that a path names."""

    resource: Resource
    namespace: str | None
    name: str
    sub: str


def verb_of(request: Request, target: Target) -> str:
    """Return the Kubernetes API verb of a request."""
    if request.method in ("GET", "HEAD"):
        if not target.sub and is_true(request.query, "watch"):
            return "watch"
        return "get" if target.name else "list"
    if request.method == "DELETE" and not target.name:
        return "deletecollection"
    return VERBS.get(request.method, request.method.lower())


def parse(path: str, registry: Registry) -> Target | None:
    """Return the target of a path; None if it is not the path of a resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if "" in rest:
        return None
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace = rest[1]
        rest = rest[2:]
    resource = registry.by_path.get((group, version, rest[0]))
    if resource is None or len(rest) > 3:
        return None
    # Of a namespaced resource, only the list over all namespaces has a path without a namespace.
    if resource.namespaced != (namespace is not None) and (namespace is not None or len(rest) > 1):
        return None
    sub = rest[2] if len(rest) == 3 else ""
    if sub and sub not in resource.subresources:
        return None
    return Target(resource, namespace, rest[1] if len(rest) > 1 else "", sub)

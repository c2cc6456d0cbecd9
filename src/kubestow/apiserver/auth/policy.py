"""Authorization without RBAC: a small fixed policy.

Members of `system:masters` may do everything. `system:kube-scheduler` has the permissions of a scheduler, and may
patch custom resources, for its plugins. All other authenticated users may read everything except secrets, and review
their own access. Anonymous users may only read the health and version of the server.
"""

from dataclasses import dataclass
from typing import Protocol

from kubestow.apiserver import errors
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from kubestow.apiserver.resources import RESOURCES, Registry

Rule = dict[str, list[str]]
_READ = frozenset(("get", "list", "watch"))
_SELF = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
_SCHEDULER_WRITES = {
    "pods": frozenset(("delete",)),
    "pods/binding": frozenset(("create",)),
    "bindings": frozenset(("create",)),
    "pods/status": frozenset(("patch", "update")),
    "events": frozenset(("create", "patch", "update")),
    "leases": frozenset(("create", "get", "update")),
    "persistentvolumes": frozenset(("patch", "update")),
    "persistentvolumeclaims": frozenset(("patch", "update")),
    "resourceclaims": frozenset(("create", "delete", "patch", "update")),
    "resourceclaims/binding": frozenset(("patch", "update")),
    "resourceclaims/status": frozenset(("patch", "update")),
    "compositepodgroups/status": frozenset(("patch", "update")),
    "podgroups/status": frozenset(("patch", "update")),
    "tokenreviews": frozenset(("create",)),
    "subjectaccessreviews": frozenset(("create",)),
}
_BUILT_IN_GROUPS = frozenset(one.group for one in RESOURCES) | {""}
_ALL = {"apiGroups": ["*"], "resources": ["*"]}
_GET_PATHS = {"verbs": ["get"], "nonResourceURLs": ["*"]}
EVERYTHING: list[Rule] = [{"verbs": ["*"], **_ALL}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
"""Rules that allow everything."""
_SELF_REVIEWS: Rule = {
    "verbs": ["create"], "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"], "resources": list(_SELF),
}  # fmt: skip
_SCHEDULER_RULES: list[Rule] = [
    {"verbs": sorted(verbs), "apiGroups": ["*"], "resources": [what]} for what, verbs in _SCHEDULER_WRITES.items()
]


@dataclass(slots=True, frozen=True)
class Attempt:
    """An action that a user requests."""

    verb: str
    resource: str = ""
    """Plural name, with a slash and the subresource, if any; empty for paths that are no resources."""
    path: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""


def denial(user: User, attempt: Attempt, why: str = "") -> ApiError:
    """Return the error for an attempt that is not allowed; `why` is an additional reason."""
    what, reason = f'User "{user.name}" cannot {attempt.verb}', f": {why}" if why else ""
    if not attempt.resource:
        return errors.forbidden("", "", "", f'{what} path "{attempt.path}"{reason}')
    where = f'in the namespace "{attempt.namespace}"' if attempt.namespace else "at the cluster scope"
    resource = f'resource "{attempt.resource}" in API group "{attempt.group}"'
    plural = attempt.resource.partition("/")[0]
    return errors.forbidden(attempt.group, plural, attempt.name, f"{what} {resource} {where}{reason}")


class Authorizer(Protocol):
    """Decides on the actions of users."""

    def allowed(self, user: User, attempt: Attempt) -> bool:
        """Return whether a user may perform an action."""

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """Return the rules that apply to a user in a namespace, as in an access review."""


class FixedPolicy:
    """The policy without roles."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def allowed(self, user: User, attempt: Attempt) -> bool:
        if MASTERS in user.groups:
            return True
        if UNAUTHENTICATED in user.groups:
            return not attempt.resource and attempt.verb == "get" and attempt.path in _PUBLIC
        if not attempt.resource:
            return attempt.verb == "get"
        base = attempt.resource.partition("/")[0]
        if base in _SELF:
            return attempt.verb == "create"
        if attempt.verb in _READ and base != "secrets" and not attempt.resource.endswith("/token"):
            return True
        if user.name != "system:kube-scheduler":
            return False
        if attempt.group not in _BUILT_IN_GROUPS:
            # Plugins of the scheduler write to their custom resources.
            return attempt.verb == "patch"
        return attempt.verb in _SCHEDULER_WRITES.get(attempt.resource, ())

    def rules_for(self, user: User, namespace: str) -> list[Rule]:  # noqa: ARG002 the same in all namespaces
        if MASTERS in user.groups:
            return [EVERYTHING[0], _GET_PATHS]
        if UNAUTHENTICATED in user.groups:
            return [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}]
        rules: list[Rule] = [{"verbs": ["get", "list", "watch"], **_ALL}, _SELF_REVIEWS, _GET_PATHS]
        if user.name == "system:kube-scheduler":
            rules += _SCHEDULER_RULES
            custom = {one.group for one in self._registry.resources} - _BUILT_IN_GROUPS
            rules += [{"verbs": ["patch"], "apiGroups": sorted(custom), "resources": ["*"]}] if custom else []
        return rules


_READABLE = ["configmaps", "endpoints", "events", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"]
_READABLE += ["pods", "pods/log", "pods/status", "replicationcontrollers", "resourcequotas", "serviceaccounts"]
_READABLE += ["limitranges", "services"]
_SCHEDULER_READS = ["apps", "coordination.k8s.io", "events.k8s.io", "policy", "resource.k8s.io", "scheduling.k8s.io"]
_SCHEDULER_READS += ["storage.k8s.io"]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]
_MONITORING = ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"]
ROLES: dict[str, list[Rule]] = {
    "cluster-admin": EVERYTHING,
    "view": [
        {"verbs": sorted(_READ), "apiGroups": [""], "resources": _READABLE},
        {
            "verbs": sorted(_READ),
            "apiGroups": ["apps", "batch", "autoscaling", "policy", "networking.k8s.io", "resource.k8s.io"],
            "resources": ["*"],
        },
    ],
    "system:basic-user": [_SELF_REVIEWS],
    "system:discovery": [{"verbs": ["get"], "nonResourceURLs": _DISCOVERY}],
    "system:monitoring": [{"verbs": ["get"], "nonResourceURLs": _MONITORING}],
    "system:public-info-viewer": [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}],
    "system:kube-scheduler": [
        {"verbs": sorted(_READ), "apiGroups": [""], "resources": _READABLE},
        {"verbs": sorted(_READ), "apiGroups": _SCHEDULER_READS, "resources": ["*"]},
        *_SCHEDULER_RULES,
    ],
}
"""The predefined ClusterRoles, with RBAC."""
ROLE_BINDINGS = {
    role: [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name} for name in names]
    for role, kind, *names in (
        ("cluster-admin", "Group", MASTERS),
        ("system:basic-user", "Group", AUTHENTICATED),
        ("system:discovery", "Group", AUTHENTICATED),
        ("system:kube-scheduler", "User", "system:kube-scheduler"),
        ("system:monitoring", "Group", "system:monitoring"),
        ("system:public-info-viewer", "Group", AUTHENTICATED, UNAUTHENTICATED),
    )
}
"""The subjects of each of these roles, by role."""

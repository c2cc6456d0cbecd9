"""What users may do where nobody asked for RBAC: a fixed policy, small enough to read.

Members of `system:masters` may do everything. `system:kube-scheduler` may do what a scheduler has to. Everybody else
the server knows may read everything except secrets, and ask about themselves. Who shows nothing to be known by may do
nothing: paths that are open to all are open before anybody asks here.
"""

from dataclasses import dataclass
from typing import Protocol

from kubestow.apiserver.objects.intent import User

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
    "podgroups": frozenset(("patch", "update")),
    "podgroups/status": frozenset(("patch", "update")),
    "tokenreviews": frozenset(("create",)),
    "subjectaccessreviews": frozenset(("create",)),
}


@dataclass(slots=True, frozen=True)
class Attempt:
    """What somebody wants to do."""

    verb: str
    resource: str = ""
    """Plural name, with a slash and the subresource if there is one; empty for other paths."""
    path: str = ""
    group: str = ""
    namespace: str = ""
    name: str = ""


class Authorizer(Protocol):
    """Says what users may do."""

    def allowed(self, user: User, attempt: Attempt) -> bool:
        """Whether a user may do it."""

    def rules_for(self, user: User, namespace: str) -> list[dict[str, list[str]]]:
        """What a user may do in a namespace, as rules of an access review."""


class FixedPolicy:
    """The policy without any roles."""

    def allowed(self, user: User, attempt: Attempt) -> bool:
        return _allowed(user, attempt)

    def rules_for(self, user: User, namespace: str) -> list[dict[str, list[str]]]:  # noqa: ARG002 the same in all
        return [*_rules_for(user), {"verbs": ["get"], "nonResourceURLs": ["*"]}]


def _allowed(user: User, attempt: Attempt) -> bool:
    if "system:masters" in user.groups:
        return True
    if "system:unauthenticated" in user.groups:
        return False
    if not attempt.resource:
        return attempt.verb == "get"
    base = attempt.resource.partition("/")[0]
    if base in _SELF:
        return attempt.verb == "create"
    if attempt.verb in _READ and base != "secrets" and not attempt.resource.endswith("/token"):
        return True
    return user.name == "system:kube-scheduler" and attempt.verb in _SCHEDULER_WRITES.get(attempt.resource, ())


def _rules_for(user: User) -> list[dict[str, list[str]]]:
    if "system:masters" in user.groups:
        return [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    rules = [
        {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["create"], "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"], "resources": list(_SELF)},
    ]
    if user.name == "system:kube-scheduler":
        rules += [
            {"verbs": sorted(verbs), "apiGroups": ["*"], "resources": [resource]}
            for resource, verbs in _SCHEDULER_WRITES.items()
        ]
    return rules


_EVERYTHING = {"apiGroups": ["*"], "resources": ["*"]}
_READABLE = ["configmaps", "endpoints", "events", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"]
_READABLE += ["pods", "pods/log", "pods/status", "replicationcontrollers", "resourcequotas", "serviceaccounts"]
_READABLE += ["limitranges", "services"]
_SCHEDULER_READS = ["apps", "coordination.k8s.io", "events.k8s.io", "policy", "resource.k8s.io", "scheduling.k8s.io"]
_SCHEDULER_READS += ["storage.k8s.io"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"]
_DISCOVERY += ["/healthz", "/livez", "/readyz"]
ROLES: dict[str, list[dict[str, list[str]]]] = {
    "cluster-admin": [{"verbs": ["*"], **_EVERYTHING}, {"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "view": [
        {"verbs": sorted(_READ), "apiGroups": [""], "resources": _READABLE},
        {
            "verbs": sorted(_READ),
            "apiGroups": ["apps", "batch", "autoscaling", "policy", "networking.k8s.io", "resource.k8s.io"],
            "resources": ["*"],
        },
    ],
    "system:basic-user": [
        {"verbs": ["create"], "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"], "resources": list(_SELF)}
    ],
    "system:discovery": [
        {"verbs": ["get"], "nonResourceURLs": _DISCOVERY},
    ],
    "system:kube-scheduler": [
        {"verbs": sorted(_READ), "apiGroups": [""], "resources": _READABLE},
        {"verbs": sorted(_READ), "apiGroups": _SCHEDULER_READS, "resources": ["*"]},
        *(
            {"verbs": sorted(verbs), "apiGroups": ["*"], "resources": [what]}
            for what, verbs in _SCHEDULER_WRITES.items()
        ),
    ],
}
"""The ClusterRoles that are there where RBAC is asked for."""
ROLE_BINDINGS = {
    "cluster-admin": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:masters"},
    "system:basic-user": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"},
    "system:discovery": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"},
    "system:kube-scheduler": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "User",
        "name": "system:kube-scheduler",
    },
}
"""Whom they are given to, by role."""

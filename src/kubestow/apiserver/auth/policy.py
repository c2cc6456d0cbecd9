"""What users may do: a fixed policy, small enough to read.

Members of `system:masters` may do everything. `system:kube-scheduler` may do what a scheduler has to. Everybody else
the server knows may read everything except secrets, and ask about themselves. Who shows nothing to be known by may do
nothing: paths that are open to all are open before anybody asks here.
"""

from dataclasses import dataclass

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
    "resourceclaims": frozenset(("patch", "update")),
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


def allowed(user: User, attempt: Attempt) -> bool:
    """Whether a user may do it."""
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


def rules_for(user: User) -> list[dict[str, list[str]]]:
    """The policy for a user, as rules of an access review."""
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

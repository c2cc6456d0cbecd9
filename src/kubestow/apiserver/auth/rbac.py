"""RBAC authorization: permissions by Role, ClusterRole and their bindings.

Members of `system:masters` may do everything. Other users have the rules of the roles that bindings grant them: a
ClusterRoleBinding everywhere, a RoleBinding in its namespace. The rules are collected again after a change of a role
or a binding. A ClusterRole with an aggregationRule includes the rules of the ClusterRoles that its selectors match.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubestow.api import codec
from kubestow.api.labels import compile_selector
from kubestow.api.meta import LabelSelector
from kubestow.apiserver.auth.policy import EVERYTHING, Attempt
from kubestow.apiserver.objects.intent import MASTERS, User
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

GROUP = "rbac.authorization.k8s.io"
_KINDS = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
Object = dict[str, Any]
Subject = tuple[str, str]
"""Kind and name: a User or a Group; a service account is represented by its user."""


class _Granted(NamedTuple):
    """Rules granted to a subject in a namespace; everywhere if the namespace is empty."""

    namespace: str
    rules: list[Object]


class Rbac:
    """Authorizes users by the roles and bindings in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._granted: dict[Subject, list[_Granted]] | None = None
        for kind in _KINDS:
            store.collection(f"{kind}.{GROUP}").subscribe(self._invalidate, None)

    def _invalidate(self, _: Change) -> None:
        self._granted = None

    def allowed(self, user: User, attempt: Attempt) -> bool:
        """Return whether a user may perform an action."""
        if MASTERS in user.groups:
            return True
        return any(_allows(rule, attempt) for rule in self._rules(user, attempt.namespace))

    def rules_for(self, user: User, namespace: str) -> list[Object]:
        """Return the rules that apply to a user in a namespace."""
        if MASTERS in user.groups:
            return [*EVERYTHING]
        return list(self._rules(user, namespace))

    def _rules(self, user: User, namespace: str) -> Iterator[Object]:
        if self._granted is None:
            self._granted = self._collect_grants()
        for subject in (("User", user.name), *(("Group", group) for group in user.groups)):
            for granted in self._granted.get(subject, ()):
                if granted.namespace in ("", namespace):
                    yield from granted.rules

    def _collect_grants(self) -> dict[Subject, list[_Granted]]:
        granted: dict[Subject, list[_Granted]] = {}
        for kind in ("clusterrolebindings", "rolebindings"):
            for binding in self._all(kind):
                namespace = binding["metadata"].get("namespace", "")
                rules = self.rules_of(binding["roleRef"], namespace) or []
                for subject in binding.get("subjects") or ():
                    granted.setdefault(_subject(subject, namespace), []).append(_Granted(namespace, rules))
        return granted

    def rules_of(self, reference: Object, namespace: str) -> list[Object] | None:
        """Return the rules of the role that a binding refers to; None if the role does not exist."""
        is_cluster_role = reference["kind"] == "ClusterRole"
        storage = f"{'clusterroles' if is_cluster_role else 'roles'}.{GROUP}"
        record = self._store.get(storage, "" if is_cluster_role else namespace, reference["name"])
        if record is None:
            return None
        role = record.object()
        rules = list(role.get("rules") or ())
        for chosen in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            selector = compile_selector(codec.convert(LabelSelector, chosen))
            rules += [
                rule
                for other in self._all("clusterroles")
                if other["metadata"]["name"] != reference["name"]
                and selector.matches(other["metadata"].get("labels") or {})
                for rule in other.get("rules") or ()
            ]
        return rules

    def _all(self, kind: str) -> Iterator[Object]:
        for record in self._store.collection(f"{kind}.{GROUP}").objects.values():
            yield record.object()


def _subject(subject: Object, namespace: str) -> Subject:
    if subject["kind"] == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject['name']}"
    return subject["kind"], subject["name"]


def _allows(rule: Object, attempt: Attempt) -> bool:
    if not _includes(rule.get("verbs"), attempt.verb):
        return False
    if not attempt.resource:
        return any(_path_matches(path, attempt.path) for path in rule.get("nonResourceURLs") or ())
    subresource = attempt.resource.partition("/")[2]
    resources: list[str] = rule.get("resources") or []
    return (
        _includes(rule.get("apiGroups"), attempt.group)
        and (_includes(resources, attempt.resource) or (bool(subresource) and f"*/{subresource}" in resources))
        and (not rule.get("resourceNames") or (bool(attempt.name) and attempt.name in rule["resourceNames"]))
    )


def _includes(listed: list[str] | None, wanted: str) -> bool:
    return listed is not None and ("*" in listed or wanted in listed)


def _path_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern

"""What users may do by Role, ClusterRole and their bindings, as rbac.authorization.k8s.io has it.

Members of `system:masters` may do everything. Everybody else may do what a rule of a role allows that a binding gives
them: a ClusterRoleBinding everywhere, a RoleBinding in its namespace. Rules are put together anew when a role or a
binding has changed. A ClusterRole with an aggregationRule has the rules of those that its selectors choose, too.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubestow.api import codec
from kubestow.api.labels import compile_selector
from kubestow.api.meta import LabelSelector
from kubestow.apiserver.auth.policy import EVERYTHING, Attempt
from kubestow.apiserver.objects.intent import User
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

GROUP = "rbac.authorization.k8s.io"
_KINDS = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
Object = dict[str, Any]
Subject = tuple[str, str]
"""Its kind and name: a User, or a Group; a service account is the user that it acts as."""


class _Granted(NamedTuple):
    """Rules that a subject has, in a namespace or, if it is empty, everywhere."""

    namespace: str
    rules: list[Object]


class Rbac:
    """Says what users may do, from what is stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._granted: dict[Subject, list[_Granted]] | None = None
        for kind in _KINDS:
            store.collection(f"{kind}.{GROUP}").follow(self._forget, None)

    def _forget(self, _: Change) -> None:
        self._granted = None

    def allowed(self, user: User, attempt: Attempt) -> bool:
        """Whether a user may do it."""
        if "system:masters" in user.groups:
            return True
        return any(_allows(rule, attempt) for rule in self._rules(user, attempt.namespace))

    def rules_for(self, user: User, namespace: str) -> list[Object]:
        """What a user may do in a namespace, as rules."""
        if "system:masters" in user.groups:
            return [*EVERYTHING]
        return list(self._rules(user, namespace))

    def _rules(self, user: User, namespace: str) -> Iterator[Object]:
        if self._granted is None:
            self._granted = self._grant()
        for subject in (("User", user.name), *(("Group", group) for group in user.groups)):
            for granted in self._granted.get(subject, ()):
                if granted.namespace in ("", namespace):
                    yield from granted.rules

    def _grant(self) -> dict[Subject, list[_Granted]]:
        granted: dict[Subject, list[_Granted]] = {}
        for kind in ("clusterrolebindings", "rolebindings"):
            for binding in self._all(kind):
                namespace = binding["metadata"].get("namespace", "")
                rules = self.rules_of(binding["roleRef"], namespace) or []
                for subject in binding.get("subjects") or ():
                    granted.setdefault(_subject(subject, namespace), []).append(_Granted(namespace, rules))
        return granted

    def rules_of(self, reference: Object, namespace: str) -> list[Object] | None:
        """Those of a role that a binding refers to; None where it is not there (yet)."""
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
    if not _names(rule.get("verbs"), attempt.verb):
        return False
    if not attempt.resource:
        return any(_covers(path, attempt.path) for path in rule.get("nonResourceURLs") or ())
    subresource = attempt.resource.partition("/")[2]
    resources: list[str] = rule.get("resources") or []
    return (
        _names(rule.get("apiGroups"), attempt.group)
        and (_names(resources, attempt.resource) or (bool(subresource) and f"*/{subresource}" in resources))
        and (not rule.get("resourceNames") or (bool(attempt.name) and attempt.name in rule["resourceNames"]))
    )


def _names(listed: list[str] | None, wanted: str) -> bool:
    return listed is not None and ("*" in listed or wanted in listed)


def _covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern

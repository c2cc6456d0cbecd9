"""Prevention of privilege escalation: users cannot grant permissions that they do not have, as in kube-apiserver.

The author of a role must have all permissions in its rules, or the verb `escalate` for it; the author of a binding
must have all permissions of its role, or the verb `bind` for that role. The rules of an aggregated role are open, so
only users with all permissions may write one. Missing permissions are reported rule by rule, with verbs merged.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Any

from kubestow.apiserver.admission.writes import Write
from kubestow.apiserver.auth.policy import EVERYTHING, Attempt
from kubestow.apiserver.auth.rbac import GROUP, Rbac
from kubestow.apiserver.errors import not_found
from kubestow.apiserver.objects.intent import MASTERS, User

Object = dict[str, Any]
_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_MAX_COMBINATIONS = 10_000
"""Maximum number of combinations to check one by one; beyond it, rules are checked as a whole."""
_GARBAGE_COLLECTION_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")
_FIELD_NAMES = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


class Escalation:
    """Checks writes of roles and bindings."""

    def __init__(self, rbac: Rbac) -> None:
        self._rbac = rbac

    def check(self, write: Write) -> str | None:
        """Return why a write must be denied, if it must; raises ApiError if the role does not exist."""
        kind, user, new = write.resource.plural, write.intent.user, write.new
        if write.resource.group != GROUP or new is None or MASTERS in user.groups:
            return None
        if write.old is not None and _comparable(write.old) == _comparable(new):
            return None
        if kind in _ROLES:
            return self._check_role(write, new, user)
        return self._check_binding(write, new, user) if kind in _BINDINGS else None

    def _check_role(self, write: Write, role: Object, user: User) -> str | None:
        name = "" if write.old is None else role["metadata"]["name"]
        attempt = Attempt("escalate", write.resource.plural, group=GROUP, namespace=write.namespace, name=name)
        if self._rbac.allowed(user, attempt):
            return None
        aggregates = any(
            (one or {}).get("aggregationRule", {}).get("clusterRoleSelectors") for one in (role, write.old)
        )
        if aggregates and self._missing(user, "", EVERYTHING):
            return "must have cluster-admin privileges to use the aggregationRule"
        return self._missing(user, write.namespace, role.get("rules") or ())

    def _check_binding(self, write: Write, binding: Object, user: User) -> str | None:
        reference = binding["roleRef"]
        roles = "clusterroles" if reference["kind"] == "ClusterRole" else "roles"
        attempt = Attempt("bind", roles, group=GROUP, namespace=write.namespace, name=reference["name"])
        if self._rbac.allowed(user, attempt):
            return None
        rules = self._rbac.rules_of(reference, write.namespace)
        if rules is None:
            raise not_found(GROUP, roles, reference["name"])
        return self._missing(user, write.namespace, rules)

    def _missing(self, user: User, namespace: str, wanted: Iterable[Object]) -> str | None:
        held = list(self._rbac.rules_for(user, namespace))
        lacking = [rule for rule in wanted if not _covered(rule, held)]
        if sum(map(_combinations, lacking)) <= _MAX_COMBINATIONS:
            lacking = [part for rule in lacking for part in _parts(rule) if not _covered(part, held)]
        if not lacking:
            return None
        groups = " ".join(json.dumps(group) for group in user.groups)
        begin = f"user {json.dumps(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions"
        return f"{begin} not currently held:\n" + "\n".join(sorted(map(_format_rule, _merge_verbs(lacking))))


def _comparable(obj: Object) -> Object:
    """Return an object without the fields that garbage collection changes."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _GARBAGE_COLLECTION_FIELDS}
    return {**obj, "metadata": metadata}


def _combinations(rule: Object) -> int:
    return prod(max(1, len(value)) for value in rule.values())


def _parts(rule: Object) -> Iterator[Object]:
    """Split a rule into rules with a single verb, group, resource and name each."""
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        for group, resource in product(rule.get("apiGroups") or (), rule.get("resources") or ()):
            for names in [[name] for name in rule.get("resourceNames") or ()] or [[]]:
                yield {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": [verb]}


def _covered(rule: Object, held: list[Object]) -> bool:
    return any(_covers(one, rule) for one in held)


def _covers(held: Object, wanted: Object) -> bool:
    """Return whether a rule allows everything that another one does."""
    names = held.get("resourceNames")
    return (
        _all_in(wanted.get("verbs"), held.get("verbs"))
        and _all_in(wanted.get("apiGroups"), held.get("apiGroups"))
        and all(_has_resource(held.get("resources") or (), one) for one in wanted.get("resources") or ())
        and all(_has_path(held.get("nonResourceURLs") or (), one) for one in wanted.get("nonResourceURLs") or ())
        and (not names or (bool(wanted.get("resourceNames")) and set(wanted["resourceNames"]) <= set(names)))
    )


def _all_in(wanted: Iterable[str] | None, held: Iterable[str] | None) -> bool:
    owned = set(held or ())
    return "*" in owned or set(wanted or ()) <= owned


def _has_resource(held: Iterable[str], wanted: str) -> bool:
    below = wanted.partition("/")[2]
    return any(one in ("*", wanted) or (below and one == f"*/{below}") for one in held)


def _has_path(held: Iterable[str], wanted: str) -> bool:
    return any(one == wanted or (one.endswith("*") and wanted.startswith(one[:-1])) for one in held)


def _merge_verbs(parts: list[Object]) -> Iterator[Object]:
    """Merge rules that differ only in their verbs."""
    found: dict[str, Object] = {}
    for part in parts:
        key = json.dumps({name: value for name, value in part.items() if name != "verbs"})
        known = found.setdefault(key, {**part, "verbs": []})
        known["verbs"] = [*known["verbs"], *part["verbs"]]
    yield from found.values()


def _format_rule(rule: Object) -> str:
    parts = (f"{name}:[{' '.join(map(json.dumps, rule[key]))}]" for key, name in _FIELD_NAMES.items() if rule.get(key))
    return "{" + ", ".join(parts) + "}"

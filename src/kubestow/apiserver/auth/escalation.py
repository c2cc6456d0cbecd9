"""Nobody gives rights that they do not have: what kube-apiserver looks at when roles and bindings are written.

Whoever writes a role must have all that its rules allow, or the verb `escalate` for it; whoever writes a binding must
have all that its role allows, or the verb `bind` for that. An aggregated role may become anything, so only those who
may do everything write one. What somebody lacks is told rule by rule, with verbs put together.
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
from kubestow.apiserver.objects.intent import User

Object = dict[str, Any]
_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_MOST = 10_000
"""Combinations of what rules name that are looked at one by one; of more, rules are taken as a whole."""
_OF_GARBAGE_COLLECTION = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")
_TOLD = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


class Escalation:
    """Looks at writes of roles and bindings."""

    def __init__(self, rbac: Rbac) -> None:
        self._rbac = rbac

    def complaint(self, write: Write) -> str | None:
        """Why a write would give rights that its author does not have; raises ApiError where a role is missing."""
        kind, user, new = write.resource.plural, write.intent.user, write.new
        if write.resource.group != GROUP or new is None or "system:masters" in user.groups:
            return None
        if write.old is not None and _given(write.old) == _given(new):
            return None
        if kind in _ROLES:
            return self._of_role(write, new, user)
        return self._of_binding(write, new, user) if kind in _BINDINGS else None

    def _of_role(self, write: Write, role: Object, user: User) -> str | None:
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

    def _of_binding(self, write: Write, binding: Object, user: User) -> str | None:
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
        has = list(self._rbac.rules_for(user, namespace))
        lacking = [rule for rule in wanted if not _covered(rule, has)]
        if sum(map(_combinations, lacking)) <= _MOST:
            lacking = [part for rule in lacking for part in _parts(rule) if not _covered(part, has)]
        if not lacking:
            return None
        groups = " ".join(json.dumps(group) for group in user.groups)
        begin = f"user {json.dumps(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions"
        return f"{begin} not currently held:\n" + "\n".join(sorted(map(_told, _together(lacking))))


def _given(obj: Object) -> Object:
    """All but what garbage collection changes."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OF_GARBAGE_COLLECTION}
    return {**obj, "metadata": metadata}


def _combinations(rule: Object) -> int:
    return prod(max(1, len(value)) for value in rule.values())


def _parts(rule: Object) -> Iterator[Object]:
    """A rule as many that name one thing of each kind."""
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        for group, resource in product(rule.get("apiGroups") or (), rule.get("resources") or ()):
            for names in [[name] for name in rule.get("resourceNames") or ()] or [[]]:
                yield {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": [verb]}


def _covered(rule: Object, has: list[Object]) -> bool:
    return any(_covers(one, rule) for one in has)


def _covers(has: Object, wanted: Object) -> bool:
    """Whether a rule allows all that another does."""
    names = has.get("resourceNames")
    return (
        _all_in(wanted.get("verbs"), has.get("verbs"))
        and _all_in(wanted.get("apiGroups"), has.get("apiGroups"))
        and all(_has_resource(has.get("resources") or (), one) for one in wanted.get("resources") or ())
        and all(_has_path(has.get("nonResourceURLs") or (), one) for one in wanted.get("nonResourceURLs") or ())
        and (not names or (bool(wanted.get("resourceNames")) and set(wanted["resourceNames"]) <= set(names)))
    )


def _all_in(wanted: Iterable[str] | None, has: Iterable[str] | None) -> bool:
    owned = set(has or ())
    return "*" in owned or set(wanted or ()) <= owned


def _has_resource(has: Iterable[str], wanted: str) -> bool:
    below = wanted.partition("/")[2]
    return any(one in ("*", wanted) or (below and one == f"*/{below}") for one in has)


def _has_path(has: Iterable[str], wanted: str) -> bool:
    return any(one == wanted or (one.endswith("*") and wanted.startswith(one[:-1])) for one in has)


def _together(parts: list[Object]) -> Iterator[Object]:
    """Those that differ by their verbs alone as one."""
    found: dict[str, Object] = {}
    for part in parts:
        key = json.dumps({name: value for name, value in part.items() if name != "verbs"})
        known = found.setdefault(key, {**part, "verbs": []})
        known["verbs"] = [*known["verbs"], *part["verbs"]]
    yield from found.values()


def _told(rule: Object) -> str:
    parts = (f"{name}:[{' '.join(map(json.dumps, rule[key]))}]" for key, name in _TOLD.items() if rule.get(key))
    return "{" + ", ".join(parts) + "}"

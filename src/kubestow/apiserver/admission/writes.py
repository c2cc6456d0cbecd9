"""Writes as admission sees them, and the match rules of policies and webhooks.

Rules name operations, groups, versions and resources; selectors select namespaces and objects. Unless its match policy
is Exact, a rule for one version of a resource matches the others, too, and sees the object in that one version.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
"""Kinds that configure admission are exempt from policies: otherwise a broken policy could not be repaired."""


@dataclass(slots=True)
class Write:
    """A create, update or delete; objects are in their stored version."""

    operation: str
    resource: Resource
    new: Object | None
    old: Object | None
    intent: Intent
    sub: str = ""

    @property
    def metadata(self) -> Object:
        """The metadata of the new object, or of the old one if it is deleted."""
        found: Object = (self.new or self.old or {}).get("metadata", {})
        return found

    @property
    def namespace(self) -> str:
        """The namespace of the object; of a namespace, its own name."""
        key = "name" if self.resource.storage == "namespaces" else "namespace"
        return str(self.metadata.get(key, ""))

    def in_version_of(self, obj: Object | None, resource: Resource) -> Object | None:
        """Return an object in the version of a resource."""
        if obj is None or resource.conversion is None:
            return obj
        return resource.conversion.from_stored(copy.deepcopy(obj))


def match_resource(match: Object, write: Write, store: Store) -> Resource | None:
    """Return the resource by which a match applies to a write; None if it does not apply."""
    if not _matches_selectors(match, write, store):
        return None
    excluded = match.get("excludeResourceRules", ())
    if excluded and _match_rules(excluded, match, write, store) is not None:
        return None
    rules = match.get("resourceRules", match.get("rules"))
    return write.resource if rules is None else _match_rules(rules, match, write, store)


def _match_rules(rules: Iterable[Object], match: Object, write: Write, store: Store) -> Resource | None:
    own = write.resource
    others: list[Resource] = []
    if match.get("matchPolicy") != "Exact":
        others = [one for one in store.registry.resources if one.storage == own.storage and one is not own]
    for resource in (own, *others):
        if any(_rule_matches(rule, resource, write) for rule in rules):
            return resource
    return None


def _rule_matches(rule: Object, resource: Resource, write: Write) -> bool:
    names = rule.get("resourceNames")
    return (
        _includes(rule.get("operations", ()), write.operation)
        and _includes(rule.get("apiGroups", ()), resource.group)
        and _includes(rule.get("apiVersions", ()), resource.version)
        and rule.get("scope", "*") in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and any(_matches_resource(one, resource.plural, write.sub) for one in rule.get("resources", ()))
        and (not names or write.metadata.get("name") in names)
    )


def _includes(listed: Iterable[str], value: str) -> bool:
    return any(one in ("*", value) for one in listed)


def _matches_resource(listed: str, plural: str, sub: str) -> bool:
    """Return whether an entry such as `pods`, `*`, `pods/*` or `*/status` includes a resource."""
    resource, _, below = listed.partition("/")
    return resource in ("*", plural) and (below in ("*", sub) if "/" in listed else not sub)


def _matches_selectors(match: Object, write: Write, store: Store) -> bool:
    wanted = match.get("namespaceSelector")
    if wanted and write.namespace:
        labels = write.metadata.get("labels", {})
        if write.resource.storage != "namespaces":
            record = store.get("namespaces", "", write.namespace)
            labels = record.labels if record is not None else {}
        if not _matches_labels(wanted, labels):
            return False
    wanted = match.get("objectSelector")
    if not wanted:
        return True
    objects = [one for one in (write.new, write.old) if one is not None]
    return any(_matches_labels(wanted, one["metadata"].get("labels", {})) for one in objects)


def _matches_labels(wanted: Object, labels: dict[str, str]) -> bool:
    selector = from_object(wanted)
    return selector is not None and selector.matches(labels)

"""A write that somebody may refuse or change, and which of them a policy or a webhook is about.

Rules name operations, groups, versions and resources; selectors choose namespaces and objects. A rule for one version
of a resource is about the others, too, unless it wants to match exactly: it is then shown the object in that version.
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
"""Kinds that govern admission are not governed by it: otherwise nobody could mend a wrong one."""


@dataclass(slots=True)
class Write:
    """What is to be written: objects are in the form in which they are stored."""

    operation: str
    resource: Resource
    new: Object | None
    old: Object | None
    intent: Intent
    sub: str = ""

    @property
    def metadata(self) -> Object:
        """The metadata of the object, as it is to be or as it was."""
        found: Object = (self.new or self.old or {}).get("metadata", {})
        return found

    @property
    def namespace(self) -> str:
        """The namespace it is in; a namespace is in itself."""
        key = "name" if self.resource.storage == "namespaces" else "namespace"
        return str(self.metadata.get(key, ""))

    def shown(self, obj: Object | None, resource: Resource) -> Object | None:
        """One of the objects in some version."""
        if obj is None or resource.conversion is None:
            return obj
        return resource.conversion.from_stored(copy.deepcopy(obj))


def matched(match: Object, write: Write, store: Store) -> Resource | None:
    """The resource by whose name a match is about a write; None if it is not."""
    if not _selects(match, write, store):
        return None
    excluded = match.get("excludeResourceRules", ())
    if excluded and _resource(excluded, match, write, store) is not None:
        return None
    rules = match.get("resourceRules", match.get("rules"))
    return write.resource if rules is None else _resource(rules, match, write, store)


def _resource(rules: Iterable[Object], match: Object, write: Write, store: Store) -> Resource | None:
    own = write.resource
    others: list[Resource] = []
    if match.get("matchPolicy") != "Exact":
        others = [one for one in store.registry.resources if one.storage == own.storage and one is not own]
    for resource in (own, *others):
        if any(_covers(rule, resource, write) for rule in rules):
            return resource
    return None


def _covers(rule: Object, resource: Resource, write: Write) -> bool:
    names = rule.get("resourceNames")
    return (
        _holds(rule.get("operations", ()), write.operation)
        and _holds(rule.get("apiGroups", ()), resource.group)
        and _holds(rule.get("apiVersions", ()), resource.version)
        and rule.get("scope", "*") in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and any(_means(one, resource.plural, write.sub) for one in rule.get("resources", ()))
        and (not names or write.metadata.get("name") in names)
    )


def _holds(listed: Iterable[str], value: str) -> bool:
    return any(one in ("*", value) for one in listed)


def _means(listed: str, plural: str, sub: str) -> bool:
    """Whether an entry such as `pods`, `*`, `pods/*` or `*/status` means a resource."""
    resource, _, below = listed.partition("/")
    return resource in ("*", plural) and (below in ("*", sub) if "/" in listed else not sub)


def _selects(match: Object, write: Write, store: Store) -> bool:
    wanted = match.get("namespaceSelector")
    if wanted and write.namespace:
        labels = write.metadata.get("labels", {})
        if write.resource.storage != "namespaces":
            record = store.get("namespaces", "", write.namespace)
            labels = record.labels if record is not None else {}
        if not _fits(wanted, labels):
            return False
    wanted = match.get("objectSelector")
    if not wanted:
        return True
    objects = [one for one in (write.new, write.old) if one is not None]
    return any(_fits(wanted, one["metadata"].get("labels", {})) for one in objects)


def _fits(wanted: Object, labels: dict[str, str]) -> bool:
    selector = from_object(wanted)
    return selector is not None and selector.matches(labels)

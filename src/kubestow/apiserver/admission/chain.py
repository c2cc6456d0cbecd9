"""The chain of admission plugins."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kubestow.apiserver.admission import defaults, limits, mutations, pod_groups, pods, policies, quotas
from kubestow.apiserver.admission.writes import GROUP, Write
from kubestow.apiserver.errors import forbidden
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.store import Store
from kubestow.config.features import Features

Object = dict[str, Any]
Act = Callable[[Object, Store], str | None]
Guard = Callable[[Write], str | None]
_UPDATES = ("", "resize")
_POD_GROUPS = "podgroups.scheduling.k8s.io"


@dataclass(frozen=True, slots=True)
class Plugin:
    """Changes new objects of some storages, or refuses what is written there; complaints are said, not raised."""

    changes: dict[str, Act] = field(default_factory=dict)
    refuses: dict[str, Act] = field(default_factory=dict)
    completes: dict[str, Act] = field(default_factory=dict)
    """What changes objects at every update, too."""


PLUGINS = {
    "LimitRanger": Plugin(
        {"pods": limits.set_defaults}, {"pods": limits.check_pod, "persistentvolumeclaims": limits.check_claim}
    ),
    "ServiceAccount": Plugin({"pods": pods.set_service_account}),
    "TaintNodesByCondition": Plugin({"nodes": defaults.taint_new}),
    "PodNodeSelector": Plugin({"pods": pods.add_namespace_selector}),
    "Priority": Plugin({"pods": pods.set_priority, _POD_GROUPS: pods.set_group_priority}),
    "DefaultTolerationSeconds": Plugin(
        {"pods": pods.tolerate_departures}, completes={"pods": pods.tolerate_departures}
    ),
    "RuntimeClass": Plugin({"pods": pods.set_overhead}),
    "DefaultStorageClass": Plugin({"persistentvolumeclaims": defaults.set_class}),
    "PodGroupProtection": Plugin({_POD_GROUPS: pod_groups.protect}),
    "PodGroupWorkloadExists": Plugin({_POD_GROUPS: pod_groups.check_template}),
    "JobValidation": Plugin(refuses={"jobs.batch": pod_groups.keep_parallelism}),
    "MutatingAdmissionPolicy": Plugin(),
    "ValidatingAdmissionPolicy": Plugin(),
    "ResourceQuota": Plugin(),
}
"""Plugins in the order in which they act; quotas come last, when it is sure that nobody else refuses."""

OFF_BY_DEFAULT = ("PodGroupProtection", "PodNodeSelector")


class AdmissionError(ValueError):
    """A plugin that there is not; the message names it and those there are."""


class Admission:
    """The plugins in force at a server."""

    def __init__(
        self,
        store: Store,
        enable: Iterable[str] = (),
        disable: Iterable[str] = (),
        features: Features = Features(),  # noqa: B008 - frozen
    ) -> None:
        unknown = sorted({*enable, *disable} - set(PLUGINS))
        if unknown:
            raise AdmissionError(f"no admission plugin is called {', '.join(unknown)}; there are {', '.join(PLUGINS)}")
        self._store = store
        self.features = features
        self._mutating = store.collection(f"mutatingadmissionpolicybindings.{GROUP}")
        self._validating = store.collection(f"validatingadmissionpolicybindings.{GROUP}")
        self.plugins = [name for name in PLUGINS if name in enable or not (name in disable or name in OFF_BY_DEFAULT)]
        chosen = [PLUGINS[name] for name in self.plugins]
        self._changes = _by_storage(one.changes for one in chosen)
        self._completes = _by_storage(one.completes for one in chosen)
        self._refuses = _by_storage(one.refuses for one in chosen)
        self._counts = "ResourceQuota" in self.plugins
        self._mutates = "MutatingAdmissionPolicy" in self.plugins
        self._reviews = "ValidatingAdmissionPolicy" in self.plugins
        self.guard: Guard = lambda _: None
        """Says what is wrong with a write whoever makes it, if anything."""

    def change(self, resource: Resource, obj: Object) -> None:
        """Has plugins complete a new object."""
        for plugin in self._changes.get(resource.storage, ()):
            self._demand(resource, obj, plugin(obj, self._store))

    def complete(self, resource: Resource, obj: Object) -> None:
        """Has plugins complete an object that is updated."""
        for plugin in self._completes.get(resource.storage, ()):
            self._demand(resource, obj, plugin(obj, self._store))

    def mutate(self, write: Write) -> bool:
        """Has policies change what is to be written; whether one did."""
        return self._mutates and bool(self._mutating.objects) and mutations.mutate(self._store, write)

    def review(self, write: Write) -> None:
        """Refuses what the guard or policies refuse."""
        if write.new is not None:
            self._demand(write.resource, write.new, self.guard(write))
        if self._reviews and self._validating.objects:
            policies.review(self._store, write)

    def check(self, resource: Resource, new: Object, old: Object | None = None, sub: str = "") -> None:
        """Refuses what may not be written here and now; quotas are charged by `charge`."""
        if sub in _UPDATES and (old is None or resource.storage != "pods" or sub == "resize"):
            for plugin in self._refuses.get(resource.storage, ()):
                self._demand(resource, new, plugin(new, self._store))

    def charge(self, resource: Resource, new: Object, old: Object | None, sub: str, *, dry_run: bool) -> None:
        """Has the quotas of the namespace pay for what is written."""
        if self._counts and resource.namespaced and sub in _UPDATES:
            namespace = new["metadata"]["namespace"]
            if namespace in self._store.collection("resourcequotas").by_namespace:
                self._demand(resource, new, quotas.charge(self._store, resource, new, old, dry_run=dry_run))

    def _demand(self, resource: Resource, obj: Object, complaint: str | None) -> None:
        if complaint:
            raise forbidden(resource.group, resource.plural, obj["metadata"].get("name", ""), complaint)


def _by_storage(tables: Iterable[dict[str, Act]]) -> dict[str, list[Act]]:
    found: dict[str, list[Act]] = {}
    for table in tables:
        for storage_name, plugin in table.items():
            found.setdefault(storage_name, []).append(plugin)
    return found

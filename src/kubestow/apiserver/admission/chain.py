"""The chain of admission plugins: functions by the storage that they concern, run in the order of PLUGINS."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import product
from time import perf_counter
from typing import Any

from kubestow.apiserver.admission import defaults, limits, mutations, pod_groups, pods, policies, quotas
from kubestow.apiserver.admission.writes import GROUP, Write
from kubestow.apiserver.errors import forbidden
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.store import Store
from kubestow.config.features import Features
from kubestow.telemetry.metrics.apiserver import ApiServerMetrics
from kubestow.telemetry.metrics.instruments import MAX_RECENT, Histogram

Object = dict[str, Any]
Hook = Callable[[Object, Store], str | None]
Guard = Callable[[Write], str | None]
_UPDATES = ("", "resize")
_POD_GROUPS = "podgroups.scheduling.k8s.io"
_GROUPS = (_POD_GROUPS, "compositepodgroups.scheduling.k8s.io")


@dataclass(frozen=True, slots=True)
class Plugin:
    """The functions of a plugin, by storage. Each returns the reason to deny the write, or None."""

    on_create: dict[str, Hook] = field(default_factory=dict)
    """Functions that change new objects."""
    validate: dict[str, Hook] = field(default_factory=dict)
    """Functions that check new objects and, where `check` allows it, updated ones."""
    on_update: dict[str, Hook] = field(default_factory=dict)
    """Functions that change updated objects."""


PLUGINS = {
    "LimitRanger": Plugin(
        {"pods": limits.set_defaults}, {"pods": limits.check_pod, "persistentvolumeclaims": limits.check_claim}
    ),
    "ServiceAccount": Plugin({"pods": pods.set_service_account}),
    "TaintNodesByCondition": Plugin({"nodes": defaults.taint_new}),
    "PodNodeSelector": Plugin({"pods": pods.add_namespace_selector}),
    "Priority": Plugin({"pods": pods.set_priority, **dict.fromkeys(_GROUPS, pods.set_group_priority)}),
    "DefaultTolerationSeconds": Plugin(
        {"pods": pods.add_default_tolerations}, on_update={"pods": pods.add_default_tolerations}
    ),
    "RuntimeClass": Plugin({"pods": pods.set_overhead}),
    "DefaultStorageClass": Plugin({"persistentvolumeclaims": defaults.set_default_class}),
    "PodGroupProtection": Plugin({_POD_GROUPS: pod_groups.protect}),
    # Run by `mutate`, `review` and `charge`; they are listed so that they can be turned off.
    "MutatingAdmissionPolicy": Plugin(),
    "ValidatingAdmissionPolicy": Plugin(),
    "ResourceQuota": Plugin(),
}
"""Plugins in the order in which they run; quotas are charged last, after all other plugins."""

OFF_BY_DEFAULT = ("PodGroupProtection", "PodNodeSelector")


_STEPS = (*product(("admit", "validate"), ("CREATE", "UPDATE")), ("validate", "DELETE"))


class _Step(AbstractContextManager[None]):
    """Measures one step of one operation. It is used again for each write, which is cheaper than a new one."""

    __slots__ = ("_allowed", "_rejected", "_started")

    def __init__(self, histogram: Histogram, type_: str, operation: str) -> None:
        self._allowed, self._rejected = (histogram.of(operation, rejected, type_) for rejected in ("false", "true"))
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(self, kind: object, *_: object) -> None:
        observations = self._allowed if kind is None else self._rejected
        observations.recent.append(perf_counter() - self._started)
        if len(observations.recent) >= MAX_RECENT:
            observations.count()


class AdmissionError(ValueError):
    """An unknown plugin; the message names it and the known ones."""


class Admission:
    """The enabled plugins of a server."""

    def __init__(
        self,
        store: Store,
        enable: Iterable[str] = (),
        disable: Iterable[str] = (),
        features: Features = Features(),  # noqa: B008 - frozen
        metrics: ApiServerMetrics | None = None,
    ) -> None:
        unknown = sorted({*enable, *disable} - set(PLUGINS))
        if unknown:
            raise AdmissionError(f"unknown admission plugin {', '.join(unknown)}; known plugins: {', '.join(PLUGINS)}")
        self._store = store
        self._steps: dict[tuple[str, str], AbstractContextManager[None]] = {
            step: nullcontext() if metrics is None else _Step(metrics.admission_steps, *step) for step in _STEPS
        }
        self.features = features
        self._mutating = store.collection(f"mutatingadmissionpolicybindings.{GROUP}")
        self._validating = store.collection(f"validatingadmissionpolicybindings.{GROUP}")
        self.plugins = [name for name in PLUGINS if name in enable or not (name in disable or name in OFF_BY_DEFAULT)]
        chosen = [PLUGINS[name] for name in self.plugins]
        self._on_create = _by_storage(one.on_create for one in chosen)
        if features.pod_group_preemption_policy and "Priority" in self.plugins:
            for storage in _GROUPS:
                self._on_create[storage].append(pods.set_group_preemption_policy)
        self._on_update = _by_storage(one.on_update for one in chosen)
        self._validate = _by_storage(one.validate for one in chosen)
        self._checks_quotas = "ResourceQuota" in self.plugins
        self._has_mutating_policies = "MutatingAdmissionPolicy" in self.plugins
        self._has_validating_policies = "ValidatingAdmissionPolicy" in self.plugins
        self.guard: Guard = lambda _: None
        """Returns the reason to deny a write, or None; runs before validating policies."""

    def step(self, type_: str, operation: str) -> AbstractContextManager[None]:
        """Return a context that measures a step of admission: `admit` or `validate`."""
        return self._steps[type_, operation]

    def change(self, resource: Resource, obj: Object) -> None:
        """Run the plugins that change new objects; raises ApiError if one denies the write."""
        for plugin in self._on_create.get(resource.storage, ()):
            self._raise_if_denied(resource, obj, plugin(obj, self._store))

    def complete(self, resource: Resource, obj: Object) -> None:
        """Run the plugins that change updated objects; raises ApiError if one denies the write."""
        for plugin in self._on_update.get(resource.storage, ()):
            self._raise_if_denied(resource, obj, plugin(obj, self._store))

    def mutate(self, write: Write) -> bool:
        """Run the mutating policies on a write; return whether one changed the object."""
        return self._has_mutating_policies and bool(self._mutating.objects) and mutations.mutate(self._store, write)

    def review(self, write: Write) -> None:
        """Run the guard and the validating policies; raises ApiError if one denies the write."""
        if write.new is not None:
            self._raise_if_denied(write.resource, write.new, self.guard(write))
        if self._has_validating_policies and self._validating.objects:
            policies.review(self._store, write)

    def check(self, resource: Resource, new: Object, old: Object | None = None, sub: str = "") -> None:
        """Run the validating plugins, without quotas; raises ApiError if one denies the write."""
        if sub in _UPDATES and (old is None or resource.storage != "pods" or sub == "resize"):
            for plugin in self._validate.get(resource.storage, ()):
                self._raise_if_denied(resource, new, plugin(new, self._store))

    def charge(self, resource: Resource, new: Object, old: Object | None, sub: str, *, dry_run: bool) -> None:
        """Charge the quotas of the namespace with a write; raises ApiError if one is exceeded."""
        if self._checks_quotas and resource.namespaced and sub in _UPDATES:
            namespace = new["metadata"]["namespace"]
            if namespace in self._store.collection("resourcequotas").by_namespace:
                self._raise_if_denied(resource, new, quotas.charge(self._store, resource, new, old, dry_run=dry_run))

    def _raise_if_denied(self, resource: Resource, obj: Object, reason: str | None) -> None:
        if reason:
            raise forbidden(resource.group, resource.plural, obj["metadata"].get("name", ""), reason)


def _by_storage(tables: Iterable[dict[str, Hook]]) -> dict[str, list[Hook]]:
    found: dict[str, list[Hook]] = {}
    for table in tables:
        for storage_name, plugin in table.items():
            found.setdefault(storage_name, []).append(plugin)
    return found

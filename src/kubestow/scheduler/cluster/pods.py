"""A pod with its derived properties, computed once: requests, ports, affinity terms, priority."""

from collections.abc import Hashable
from typing import Any

import msgspec

from kubestow.api.claims import claim_names_of
from kubestow.api.conditions import DISRUPTION_TARGET
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.ports import HostPort, host_ports
from kubestow.api.requests import (
    PodRequests,
    RequestRules,
    has_status_resources,
    pod_requests,
    requests_ignore_rules,
    requests_signature,
)
from kubestow.scheduler.cluster.affinity_terms import AffinityTerms, affinity_terms

_UNKNOWN = object()


class PodInfo:
    """A pod, as the cluster and plugins use it. A new version of the pod is a new PodInfo.

    Derived properties are computed on demand and cached. (Not with functools.cached_property, whose lock costs
    more than most of the values, in Python 3.11.)
    """

    __slots__ = (
        "_by_any_rules",
        "_claim_names",
        "_ports",
        "_requests",
        "_signature",
        "_terms",
        "labels",
        "namespace",
        "pod",
        "priority",
        "terminating",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        meta = pod.metadata
        self.uid = meta.uid
        self.namespace = meta.namespace
        self.labels = meta.labels
        self.terminating = meta.deletionTimestamp is not None
        self.priority = pod.spec.priority or 0
        self._requests: PodRequests | None = None
        self._by_any_rules: bool | None = None
        self._signature: Hashable | None = _UNKNOWN
        self._ports: tuple[HostPort, ...] | None = None
        self._terms: AffinityTerms | None = None
        self._claim_names: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def requests(self) -> PodRequests:
        found = self._requests
        if found is None:
            found = self._requests = pod_requests(self.pod)
        return found

    def requests_by(self, rules: RequestRules) -> PodRequests:
        """Return the requests under other rules."""
        by_any = self._by_any_rules
        if by_any is None:
            by_any = self._by_any_rules = requests_ignore_rules(self.pod)
        return self.requests if by_any else pod_requests(self.pod, rules)

    @property
    def requests_signature(self) -> Hashable | None:
        """Equal for pods whose requests are written in the same way; None if requests depend on the status."""
        found = self._signature
        if found is _UNKNOWN:
            found = self._signature = requests_signature(self.pod)
        return found

    @property
    def ports(self) -> tuple[HostPort, ...]:
        found = self._ports
        if found is None:
            found = self._ports = host_ports(self.pod)
        return found

    @property
    def terms(self) -> AffinityTerms:
        found = self._terms
        if found is None:
            found = self._terms = affinity_terms(self.namespace, self.pod.spec.affinity)
        return found

    @property
    def claim_names(self) -> tuple[str, ...]:
        """Names of the persistent volume claims of its volumes, each once, generic ephemeral ones included."""
        found = self._claim_names
        if found is None:
            found = self._claim_names = tuple(dict.fromkeys(claim_names_of(self.pod))) if self.pod.spec.volumes else ()
        return found

    def prepare(self) -> None:
        """Compute everything that can fail on invalid input; raises ValueError."""
        _ = self.requests, self.ports, self.terms

    @property
    def is_valid(self) -> bool:
        """Whether all derived properties can be computed; if not, the pod cannot be scheduled."""
        try:
            self.prepare()
        except ValueError:
            return False
        return True

    def placed_on(self, node: str) -> "PodInfo":
        """Return the pod as it will be once bound to a node."""
        spec = msgspec.structs.replace(self.pod.spec, nodeName=node)
        placed = PodInfo(msgspec.structs.replace(self.pod, spec=spec))
        placed.copy_computed(self)
        placed._claim_names = self._claim_names
        return placed

    def is_sibling_of(self, other: "PodInfo") -> bool:
        """Return whether two pods have the same controller, namespace and labels; with equal specs, they are equal.

        False if the status of this pod has allocated resources; the caller has checked that of the other one.
        """
        return (
            self.labels == other.labels
            and self.namespace == other.namespace
            and self.pod.metadata.ownerReferences == other.pod.metadata.ownerReferences
            and not has_status_resources(self.pod)
        )

    @property
    def computed(self) -> tuple[Any, ...]:
        """The cached values that are the same for equal pods."""
        return self._requests, self._by_any_rules, self._signature, self._ports, self._terms

    def copy_computed(self, other: "PodInfo") -> None:
        """Copy the cached values of an equal pod."""
        self._requests, self._by_any_rules, self._signature, self._ports, self._terms = other.computed

    def in_version(self, pod: Pod) -> tuple["PodInfo", bool]:
        """Return the PodInfo of a newer version, and whether the specs are equal; computed values are reused."""
        other = PodInfo(pod)
        is_same_spec = pod.spec == self.pod.spec
        if is_same_spec:
            other._ports = self._ports
            other._terms = self._terms
            other._claim_names = self._claim_names
            if not has_status_resources(pod) and not has_status_resources(self.pod):
                other._requests = self._requests
                other._signature = self._signature
        return other, is_same_spec

    def has_same_requests(self, other: "PodInfo") -> bool:
        """Return whether the node columns are the same with another version that has the same spec."""
        return self.requests == other.requests

    def has_same_labels(self, other: "PodInfo") -> bool:
        """Return whether counts of pods include another version as well."""
        return self.terminating == other.terminating and self.labels == other.labels

    def is_equivalent_to(self, other: "PodInfo") -> bool:
        """Return whether another version with the same spec is equal in everything that other pods depend on."""
        return self.has_same_requests(other) and self.has_same_labels(other) and self.has_same_details(other)

    def has_same_details(self, other: "PodInfo") -> bool:
        """Return whether all else that plugins and preemption read is equal in another version."""
        mine, others = self.pod, other.pod
        return (
            mine.metadata.annotations == others.metadata.annotations
            and mine.status.startTime == others.status.startTime
            and mine.status.phase == others.status.phase
        )

    def is_same_as(self, other: "PodInfo") -> bool:
        """Return whether another version with the same labels is equal in everything that scheduling reads."""
        mine, others = self.pod, other.pod
        return (
            mine.status == others.status
            and mine.metadata.annotations == others.metadata.annotations
            and mine.metadata.ownerReferences == others.metadata.ownerReferences
        )

    def adds_only_disruption_target(self, other: "PodInfo") -> bool:
        """Return whether only the DisruptionTarget condition is new: the deletion itself follows later."""
        now, before = self.pod.status, other.pod.status
        return (
            now.conditions != before.conditions
            and self.has_same_details(other)
            and _unmarked(now.conditions) == _unmarked(before.conditions)
            and now == msgspec.structs.replace(before, conditions=now.conditions)
        )

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"


def _unmarked(conditions: tuple[PodCondition, ...]) -> list[PodCondition]:
    return [condition for condition in conditions if condition.type != DISRUPTION_TARGET]

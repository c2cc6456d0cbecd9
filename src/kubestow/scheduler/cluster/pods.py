"""A pod with everything about it that is computed once: requests, ports, affinity terms, priority."""

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
    holds_by_status,
    pod_requests,
    requests_signature,
    rules_make_no_difference,
)
from kubestow.scheduler.cluster.affinity_terms import AffinityTerms, affinity_terms

_UNKNOWN = object()


class PodInfo:
    """A pod as the cluster and the plugins handle it. A new version of the pod is a new PodInfo.

    What is computed is computed when first asked for, and kept. (Not with functools.cached_property, whose lock costs
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
        """What it asks for where other rules count."""
        by_any = self._by_any_rules
        if by_any is None:
            by_any = self._by_any_rules = rules_make_no_difference(self.pod)
        return self.requests if by_any else pod_requests(self.pod, rules)

    @property
    def requests_signature(self) -> Hashable | None:
        """Equal for pods that ask for the same in the same words; None for a pod whose status counts as well."""
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
        """Names of the persistent volume claims its volumes name, each once, generic ephemeral ones included."""
        found = self._claim_names
        if found is None:
            found = self._claim_names = tuple(dict.fromkeys(claim_names_of(self.pod))) if self.pod.spec.volumes else ()
        return found

    def prepare(self) -> None:
        """Compute now what can fail on bad input; raises ValueError."""
        _ = self.requests, self.ports, self.terms

    @property
    def makes_sense(self) -> bool:
        """Whether all that can be computed is good; if not, the pod will not be scheduled as it is."""
        try:
            self.prepare()
        except ValueError:
            return False
        return True

    def placed_on(self, node: str) -> "PodInfo":
        """The pod as it will be once bound to a node."""
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
            and not holds_by_status(self.pod)
        )

    @property
    def computed(self) -> tuple[Any, ...]:
        """The cached values that are the same for equal pods."""
        return self._requests, self._by_any_rules, self._signature, self._ports, self._terms

    def copy_computed(self, other: "PodInfo") -> None:
        """Copy the cached values of an equal pod."""
        self._requests, self._by_any_rules, self._signature, self._ports, self._terms = other.computed

    def in_version(self, pod: Pod) -> tuple["PodInfo", bool]:
        """The same pod in another version; and whether the spec is the same, with all that follows from it."""
        other = PodInfo(pod)
        is_same_spec = pod.spec == self.pod.spec
        if is_same_spec:
            other._ports = self._ports
            other._terms = self._terms
            other._claim_names = self._claim_names
            if not holds_by_status(pod) and not holds_by_status(self.pod):
                other._requests = self._requests
                other._signature = self._signature
        return other, is_same_spec

    def counts_like(self, other: "PodInfo") -> bool:
        """Whether columns are the same with a version of the same spec: most updates are of its status or labels."""
        return self.requests == other.requests

    def matches_like(self, other: "PodInfo") -> bool:
        """Whether the same questions are about another version."""
        return self.terminating == other.terminating and self.labels == other.labels

    def is_like(self, other: "PodInfo") -> bool:
        """Whether nothing that matters is different in a version of the same spec."""
        return self.counts_like(other) and self.matches_like(other) and self.looks_like(other)

    def looks_like(self, other: "PodInfo") -> bool:
        """Whether a version that counts the same tells plugins and preemption the same, too."""
        mine, others = self.pod, other.pod
        return (
            mine.metadata.annotations == others.metadata.annotations
            and mine.status.startTime == others.status.startTime
            and mine.status.phase == others.status.phase
        )

    def is_same_as(self, other: "PodInfo") -> bool:
        """Return True if another version that matches like this one differs in nothing that scheduling looks at."""
        mine, others = self.pod, other.pod
        return (
            mine.status == others.status
            and mine.metadata.annotations == others.metadata.annotations
            and mine.metadata.ownerReferences == others.metadata.ownerReferences
        )

    def is_only_marked_since(self, other: "PodInfo") -> bool:
        """Whether all that is new is why the pod must go: that it does comes later."""
        now, before = self.pod.status, other.pod.status
        return (
            now.conditions != before.conditions
            and self.looks_like(other)
            and _unmarked(now.conditions) == _unmarked(before.conditions)
            and now == msgspec.structs.replace(before, conditions=now.conditions)
        )

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"


def _unmarked(conditions: tuple[PodCondition, ...]) -> list[PodCondition]:
    return [condition for condition in conditions if condition.type != DISRUPTION_TARGET]

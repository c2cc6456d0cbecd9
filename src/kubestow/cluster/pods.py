"""A pod with everything about it that is computed once: requests, ports, affinity terms, priority."""

from functools import cached_property

from kubestow.cluster.affinity_terms import AffinityTerms, affinity_terms
from kubestow.model.claims import claim_names_of
from kubestow.model.pod import Pod
from kubestow.model.ports import HostPort, host_ports
from kubestow.model.requests import PodRequests, pod_requests
from kubestow.model.standing import pod_priority


class PodInfo:
    """A pod as the cluster and the plugins handle it. A new version of the pod is a new PodInfo."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        meta = pod.metadata
        self.uid = meta.uid
        self.name = meta.name
        self.namespace = meta.namespace
        self.labels = meta.labels
        self.terminating = meta.deletionTimestamp is not None
        self.priority = pod_priority(pod)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @cached_property
    def requests(self) -> PodRequests:
        return pod_requests(self.pod)

    @cached_property
    def ports(self) -> tuple[HostPort, ...]:
        return host_ports(self.pod)

    @cached_property
    def terms(self) -> AffinityTerms:
        return affinity_terms(self.namespace, self.pod.spec.affinity)

    @cached_property
    def claim_names(self) -> tuple[str, ...]:
        """Names of the persistent volume claims its volumes name, each once, generic ephemeral ones included."""
        return tuple(dict.fromkeys(claim_names_of(self.pod)))

    def prepare(self) -> None:
        """Compute now what can fail on bad input; raises ValueError."""
        _ = self.requests, self.ports, self.terms

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"

"""The resources served: one line each, in the table below.

Under its apiVersion a line gives kind, plural name, short name, then subresources and flags: `cluster` (objects have
no namespace), `generation` (the server counts changes of the spec), `all` (part of `kubectl get all`), `review`
(answered, never stored). The schema of the kind is found by name in the tables of schema/. Events are one storage in
two API groups.
"""

from collections.abc import Iterator
from functools import cached_property
from types import MappingProxyType

from kubestow.apiserver.schema.reader import struct_named
from kubestow.apiserver.schema.types import Struct

_TABLE = """
v1
  Pod pods po status binding eviction log exec attach portforward resize ephemeralcontainers generation all
  Node nodes no cluster status
  Namespace namespaces ns cluster status finalize
  Service services svc status all
  Endpoints endpoints ep
  ConfigMap configmaps cm
  Secret secrets -
  ServiceAccount serviceaccounts sa token
  PersistentVolume persistentvolumes pv cluster status
  PersistentVolumeClaim persistentvolumeclaims pvc status
  Event events ev
  LimitRange limitranges limits
  ResourceQuota resourcequotas quota status
  ReplicationController replicationcontrollers rc status scale generation all
apps/v1
  ReplicaSet replicasets rs status scale generation all
  Deployment deployments deploy status scale generation all
  StatefulSet statefulsets sts status scale generation all
  DaemonSet daemonsets ds status generation all
  ControllerRevision controllerrevisions -
batch/v1
  Job jobs - status generation all
  CronJob cronjobs cj status generation all
policy/v1
  PodDisruptionBudget poddisruptionbudgets pdb status generation
scheduling.k8s.io/v1
  PriorityClass priorityclasses pc cluster generation
scheduling.k8s.io/v1alpha2
  PodGroup podgroups - status generation
  Workload workloads - generation
storage.k8s.io/v1
  StorageClass storageclasses sc cluster
  CSINode csinodes - cluster
  CSIDriver csidrivers - cluster
  CSIStorageCapacity csistoragecapacities -
  VolumeAttachment volumeattachments - cluster status
coordination.k8s.io/v1
  Lease leases -
discovery.k8s.io/v1
  EndpointSlice endpointslices -
events.k8s.io/v1
  Event events ev
resource.k8s.io/v1
  ResourceClaim resourceclaims - status
  ResourceClaimTemplate resourceclaimtemplates -
  ResourceSlice resourceslices - cluster generation
  DeviceClass deviceclasses - cluster generation
authentication.k8s.io/v1
  TokenReview tokenreviews - cluster review
  SelfSubjectReview selfsubjectreviews - cluster review
authorization.k8s.io/v1
  SubjectAccessReview subjectaccessreviews - cluster review
  LocalSubjectAccessReview localsubjectaccessreviews - review
  SelfSubjectAccessReview selfsubjectaccessreviews - cluster review
  SelfSubjectRulesReview selfsubjectrulesreviews - cluster review
"""

_SELECTABLE = {
    "pods": (
        "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork "
        "status.phase status.podIP status.nominatedNodeName"
    ),
    "nodes": "spec.unschedulable",
    "namespaces": "status.phase",
    "services": "spec.type",
    "secrets": "type",
    "events": (
        "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid "
        "involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath "
        "reason reportingComponent source.component type"
    ),
    "resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
}
"""Fields that field selectors may use, beside metadata.name and metadata.namespace; by storage."""

SUBRESOURCE_KINDS: MappingProxyType[str, tuple[str, str, str, tuple[str, ...]]] = MappingProxyType(
    {
        "binding": ("", "v1", "Binding", ("create",)),
        "eviction": ("policy", "v1", "Eviction", ("create",)),
        "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
        "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
        "log": ("", "v1", "Pod", ("get",)),
        "exec": ("", "v1", "PodExecOptions", ("create", "get")),
        "attach": ("", "v1", "PodAttachOptions", ("create", "get")),
        "portforward": ("", "v1", "PodPortForwardOptions", ("create", "get")),
    }
)
"""Subresources that speak another kind than their parent: group, version, kind, verbs."""

_FLAGS = ("cluster", "generation", "all", "review")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Resource:
    """What the server knows of one resource."""

    def __init__(self, api_version: str, line: str) -> None:
        self.kind, self.plural, short, *words = line.split()
        self.api_version = api_version
        self.group, _, self.version = api_version.rpartition("/")
        self.singular = self.kind.lower()
        self.short_names = () if short == "-" else (short,)
        self.namespaced = "cluster" not in words
        self.subresources = tuple(word for word in words if word not in _FLAGS)
        self.has_status = "status" in words
        self.counts_generation = "generation" in words
        self.categories = ("all",) if "all" in words else ()
        self.review = "review" in words
        self.verbs = ("create",) if self.review else _VERBS
        self.qualified = f"{self.plural}.{self.group}" if self.group else self.plural
        self.storage = "events" if self.plural == "events" else self.qualified
        self.selectable_fields = tuple(_SELECTABLE.get(self.storage, "").split())

    @cached_property
    def schema(self) -> Struct:
        """The type of this resource's objects."""
        short = self.group.removesuffix(".k8s.io") or "core"
        return struct_named(f"{short}.{self.version}", self.kind)

    def __repr__(self) -> str:
        return f"<Resource {self.qualified}/{self.version}>"


def _parse() -> Iterator[Resource]:
    api_version = ""
    for line in _TABLE.strip().split("\n"):
        if line.startswith(" "):
            yield Resource(api_version, line)
        else:
            api_version = line


RESOURCES: tuple[Resource, ...] = tuple(_parse())

BY_PATH: MappingProxyType[tuple[str, str, str], Resource] = MappingProxyType(
    {(one.group, one.version, one.plural): one for one in RESOURCES}
)
"""Resources by group, version and plural name."""

BY_STORAGE: MappingProxyType[str, Resource] = MappingProxyType(
    {one.storage: one for one in reversed(RESOURCES) if not one.review}
)
"""The resource in whose form objects are stored, by storage name: `pods`, `deployments.apps`, ..."""

BY_KIND: MappingProxyType[tuple[str, str], Resource] = MappingProxyType(
    {(one.api_version, one.kind): one for one in RESOURCES}
)
"""Resources by apiVersion and kind."""

GROUPS = tuple(dict.fromkeys(one.group for one in RESOURCES))
"""API groups in the order served; the core group is the empty string."""

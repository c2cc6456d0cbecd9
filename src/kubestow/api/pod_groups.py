"""Pod groups: pods that are to be scheduled together; and composite pod groups, which consist of groups."""

from typing import TypeAlias

from kubestow.api.meta import ApiObject, Base
from kubestow.api.pod import Pod, PodCondition, PodResourceClaim, PodResourceClaimStatus


class GangPolicy(Base, frozen=True):
    minCount: int = 0


class PodGroupPolicy(Base, frozen=True):
    gang: GangPolicy | None = None


class TopologyConstraint(Base, frozen=True):
    key: str = ""


class CompositeGangPolicy(Base, frozen=True):
    minGroupCount: int = 0


class CompositePodGroupPolicy(Base, frozen=True):
    gang: CompositeGangPolicy | None = None


class PodGroupConstraints(Base, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()


class Empty(Base, frozen=True):
    """An object without fields, which only exists or not."""


class DisruptionMode(Base, frozen=True):
    """How the pods of a group are evicted; exactly one field is set."""

    single: Empty | None = None
    all: Empty | None = None


class WorkloadReference(Base, frozen=True):
    workloadName: str = ""
    templateName: str = ""


class _GroupSpec(Base, frozen=True):
    parentCompositePodGroupName: str | None = None
    workloadRef: WorkloadReference | None = None
    schedulingConstraints: PodGroupConstraints | None = None
    disruptionMode: DisruptionMode | None = None
    priority: int | None = None
    preemptionPolicy: str | None = None


class PodGroupSpec(_GroupSpec, frozen=True):
    resourceClaims: tuple[PodResourceClaim, ...] = ()
    """The claims that are reserved for the group instead of the pods that name them in the same way."""
    schedulingPolicy: PodGroupPolicy = PodGroupPolicy()


class CompositePodGroupSpec(_GroupSpec, frozen=True):
    schedulingPolicy: CompositePodGroupPolicy = CompositePodGroupPolicy()


Condition = PodCondition
"""The API has two types with the same fields, as it has for resource claims."""


class PodGroupStatus(Base, frozen=True):
    conditions: tuple[Condition, ...] = ()
    resourceClaimStatuses: tuple[PodResourceClaimStatus, ...] = ()


COMPOSITE = "compositepodgroup/"
"""What precedes the name of a composite pod group in its key: a pod group may have the same name."""


class _Group(ApiObject, frozen=True):
    spec: _GroupSpec = _GroupSpec()

    @property
    def parent_key(self) -> str:
        """The key of the composite pod group that it is part of; empty for none."""
        name = self.spec.parentCompositePodGroupName
        return f"{self.metadata.namespace}/{COMPOSITE}{name}" if name else ""

    @property
    def topology_key(self) -> str:
        """The label for which all nodes of the group must have the same value; empty if there is no such constraint."""
        constraints = self.spec.schedulingConstraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_disrupted_together(self) -> bool:
        """Whether the pods of the group are evicted together or not at all."""
        mode = self.spec.disruptionMode
        return mode is not None and mode.all is not None


class PodGroup(_Group, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def min_count(self) -> int:
        """The number of pods that must be scheduled together; 0 for a group that is not a gang."""
        gang = self.spec.schedulingPolicy.gang
        return 0 if gang is None else gang.minCount


class CompositePodGroup(_Group, frozen=True):
    """A group of pod groups and composite pod groups, which name it as their parent."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{COMPOSITE}{self.metadata.name}"

    @property
    def min_count(self) -> int:
        """The number of its groups that must be scheduled together; 0 for a group that is not a gang."""
        gang = self.spec.schedulingPolicy.gang
        return 0 if gang is None else gang.minGroupCount


AnyGroup: TypeAlias = PodGroup | CompositePodGroup


def group_name(pod: Pod) -> str:
    """Return the name of the group of a pod; empty if it has none."""
    group = pod.spec.schedulingGroup
    return "" if group is None else group.podGroupName or ""


def group_key(pod: Pod) -> str:
    """Return the namespace/name of the group of a pod; empty if it has none."""
    group = pod.spec.schedulingGroup
    return "" if group is None or not group.podGroupName else f"{pod.metadata.namespace}/{group.podGroupName}"

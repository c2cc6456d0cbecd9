"""Pod groups: pods that are to be scheduled together."""

from kubestow.api.meta import ApiObject, Base
from kubestow.api.pod import Pod, PodCondition


class GangPolicy(Base, frozen=True):
    minCount: int = 0


class PodGroupPolicy(Base, frozen=True):
    gang: GangPolicy | None = None


class TopologyConstraint(Base, frozen=True):
    key: str = ""


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


class PodGroupSpec(Base, frozen=True):
    parentCompositePodGroupName: str | None = None
    workloadRef: WorkloadReference | None = None
    schedulingPolicy: PodGroupPolicy = PodGroupPolicy()
    schedulingConstraints: PodGroupConstraints | None = None
    disruptionMode: DisruptionMode | None = None
    priority: int | None = None
    preemptionPolicy: str | None = None


Condition = PodCondition
"""The API has two types with the same fields."""


class PodGroupStatus(Base, frozen=True):
    conditions: tuple[Condition, ...] = ()


class PodGroup(ApiObject, frozen=True):
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


def group_name(pod: Pod) -> str:
    """Return the name of the group of a pod; empty if it has none."""
    group = pod.spec.schedulingGroup
    return "" if group is None else group.podGroupName or ""


def group_key(pod: Pod) -> str:
    """Return the namespace/name of the group of a pod; empty if it has none."""
    group = pod.spec.schedulingGroup
    return "" if group is None or not group.podGroupName else f"{pod.metadata.namespace}/{group.podGroupName}"

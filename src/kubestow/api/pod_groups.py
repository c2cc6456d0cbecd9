"""Pod groups: pods that are to be scheduled together."""

from kubestow.api.meta import ApiObject, Base
from kubestow.api.pod import Pod, PodCondition

DISRUPTED_TOGETHER = "PodGroup"
"""The disruption mode of a group whose pods are evicted together or not at all."""


class GangPolicy(Base, frozen=True):
    minCount: int = 0


class PodGroupPolicy(Base, frozen=True):
    gang: GangPolicy | None = None


class TopologyConstraint(Base, frozen=True):
    key: str = ""


class PodGroupConstraints(Base, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupSpec(Base, frozen=True):
    schedulingPolicy: PodGroupPolicy = PodGroupPolicy()
    schedulingConstraints: PodGroupConstraints | None = None
    disruptionMode: str | None = None
    priority: int | None = None


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
        return self.spec.disruptionMode == DISRUPTED_TOGETHER


def group_name(pod: Pod) -> str:
    """Return the name of the group of a pod; empty if it has none."""
    group = pod.spec.schedulingGroup
    return "" if group is None else group.podGroupName or ""


def group_key(pod: Pod) -> str:
    """Return the namespace/name of the group of a pod; empty if it has none."""
    group = pod.spec.schedulingGroup
    return "" if group is None or not group.podGroupName else f"{pod.metadata.namespace}/{group.podGroupName}"

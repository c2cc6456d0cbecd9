"""Arguments of the in-tree plugins, typed. A class is named as its kind in the file: the plugin's name and `Args`."""

from kubestow.config.configuration import Int64, Section
from kubestow.config.durations import Duration
from kubestow.model.pod import NodeAffinity, TopologySpreadConstraint


class ResourceSpec(Section, frozen=True):
    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Section, frozen=True):
    """A point of a scoring function: utilization in percent, score from 0 to 10."""

    utilization: int = 0
    score: int = 0


DEFAULT_RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class RequestedToCapacityRatioParam(Section, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Section, frozen=True):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requestedToCapacityRatio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(Section, frozen=True):
    minCandidateNodesPercentage: int = 10
    minCandidateNodesAbsolute: int = 100


class DynamicResourcesArgs(Section, frozen=True):
    filterTimeout: Duration | None = None
    bindingTimeout: Duration | None = None


class InterPodAffinityArgs(Section, frozen=True):
    hardPodAffinityWeight: int = 1
    ignorePreferredTermsOfExistingPods: bool = False


class NodeAffinityArgs(Section, frozen=True):
    addedAffinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Section, frozen=True):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class NodeResourcesFitArgs(Section, frozen=True):
    ignoredResources: tuple[str, ...] = ()
    ignoredResourceGroups: tuple[str, ...] = ()
    scoringStrategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class PodTopologySpreadArgs(Section, frozen=True):
    defaultConstraints: tuple[TopologySpreadConstraint, ...] = ()
    defaultingType: str = "System"


class NodeLabelArgs(Section, frozen=True):
    presentLabels: tuple[str, ...] = ()
    absentLabels: tuple[str, ...] = ()
    presentLabelsPreference: tuple[str, ...] = ()
    absentLabelsPreference: tuple[str, ...] = ()


class NodeResourcesLeastAllocatedArgs(Section, frozen=True):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class NodeResourcesMostAllocatedArgs(Section, frozen=True):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class RequestedToCapacityRatioArgs(Section, frozen=True):
    """Where resources are absent, cpu and memory count; where the list is empty, none does."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


class ServiceAffinityArgs(Section, frozen=True):
    affinityLabels: tuple[str, ...] = ()
    antiAffinityLabelsPreference: tuple[str, ...] = ()


class VolumeBindingArgs(Section, frozen=True):
    bindTimeoutSeconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeLabelArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | NodeResourcesLeastAllocatedArgs
    | NodeResourcesMostAllocatedArgs
    | PodTopologySpreadArgs
    | RequestedToCapacityRatioArgs
    | ServiceAffinityArgs
    | VolumeBindingArgs
)

ARGS_OF_PLUGIN: dict[str, type[PluginArgs]] = {
    kind.__name__.removesuffix("Args"): kind
    for kind in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeLabelArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        NodeResourcesLeastAllocatedArgs,
        NodeResourcesMostAllocatedArgs,
        PodTopologySpreadArgs,
        RequestedToCapacityRatioArgs,
        ServiceAffinityArgs,
        VolumeBindingArgs,
    )
}

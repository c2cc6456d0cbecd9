"""Rules for the arguments of the in-tree plugins."""

import re
from collections.abc import Iterator

from kubestow.config.features import Features
from kubestow.config.plugin_args import (
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
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubestow.config.problems import Problem
from kubestow.model.label_syntax import key_problems
from kubestow.model.node_selector import compile_node_selector, compile_term
from kubestow.model.pod import TopologySpreadConstraint

_SECOND = 1_000_000_000
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_PATH_ENDS = ": (?=(?:Invalid|Unsupported) value: )"


def args_problems(args: object, path: str, features: Features) -> Iterator[Problem]:
    """What is wrong with a plugin's arguments; raw ones, of plugins from elsewhere, are theirs to judge."""
    match args:
        case DefaultPreemptionArgs():
            yield from _default_preemption(args, path)
        case DynamicResourcesArgs():
            yield from _dynamic_resources(args, path, features)
        case InterPodAffinityArgs():
            yield from _inter_pod_affinity(args, path)
        case NodeAffinityArgs():
            yield from _node_affinity(args, path)
        case NodeLabelArgs():
            yield from _node_label(args, path)
        case NodeResourcesBalancedAllocationArgs():
            yield from _balanced_allocation(args, path)
        case NodeResourcesFitArgs():
            yield from _node_resources_fit(args, path)
        case NodeResourcesLeastAllocatedArgs() | NodeResourcesMostAllocatedArgs():
            yield from _resource_problems(args.resources, path)
        case PodTopologySpreadArgs():
            yield from _pod_topology_spread(args, path)
        case RequestedToCapacityRatioArgs():
            yield from requested_to_capacity_ratio_problems(args, path)
        case VolumeBindingArgs():
            yield from _volume_binding(args, path, features)


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> Iterator[Problem]:
    percentage, absolute = args.minCandidateNodesPercentage, args.minCandidateNodesAbsolute
    if not 0 <= percentage <= 100:
        yield Problem(f"{path}.minCandidateNodesPercentage", f"must be from 0 to 100, not {percentage}")
    if absolute < 0:
        yield Problem(f"{path}.minCandidateNodesAbsolute", f"must not be negative, as {absolute} is")
    if percentage == 0 and absolute == 0:
        yield Problem(f"{path}.minCandidateNodesPercentage", "must not be 0 when minCandidateNodesAbsolute is 0")
        yield Problem(f"{path}.minCandidateNodesAbsolute", "must not be 0 when minCandidateNodesPercentage is 0")


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str) -> Iterator[Problem]:
    if not 0 <= args.hardPodAffinityWeight <= 100:
        yield Problem(f"{path}.hardPodAffinityWeight", f"must be from 0 to 100, not {args.hardPodAffinityWeight}")


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        if resource.name in seen:
            yield Problem(f"{path}.resources[{index}].name", f'"{resource.name}" is listed more than once')
        seen.add(resource.name)
        if resource.weight != 1:
            yield Problem(f"{path}.resources[{index}].weight", f"must be 1, not {resource.weight}")


def _node_resources_fit(args: NodeResourcesFitArgs, path: str) -> Iterator[Problem]:
    for index, name in enumerate(args.ignoredResources):
        yield from _name_problems(name, f"{path}.ignoredResources[{index}]")
    for index, group in enumerate(args.ignoredResourceGroups):
        if "/" in group:
            yield Problem(
                f"{path}.ignoredResourceGroups[{index}]", f'the resource group "{group}" must not contain "/"'
            )
        yield from _name_problems(group, f"{path}.ignoredResourceGroups[{index}]")
    strategy, strategy_path = args.scoringStrategy, f"{path}.scoringStrategy"
    if strategy.type not in _STRATEGIES:
        yield Problem(f"{strategy_path}.type", _one_of(_STRATEGIES, strategy.type))
    yield from _resource_problems(strategy.resources, strategy_path)
    ratio, ratio_path = strategy.requestedToCapacityRatio, f"{strategy_path}.requestedToCapacityRatio"
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield Problem(ratio_path, "is required when type is RequestedToCapacityRatio")
        else:
            yield from _shape_problems(ratio.shape, f"{ratio_path}.shape")
    elif ratio is not None:
        yield Problem(ratio_path, "must be left out unless type is RequestedToCapacityRatio")


def _resource_problems(resources: tuple[ResourceSpec, ...], path: str) -> Iterator[Problem]:
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            message = f"the weight of {resource.name} must be from 1 to 100, not {resource.weight}"
            yield Problem(f"{path}.resources[{index}].weight", message)


def requested_to_capacity_ratio_problems(args: RequestedToCapacityRatioArgs, path: str) -> Iterator[Problem]:
    """What is wrong with the arguments of RequestedToCapacityRatio, wherever they stand."""
    yield from _shape_problems(args.shape, f"{path}.shape")
    for index, resource in enumerate(args.resources):
        if resource.weight < 1:
            message = f"the weight of {resource.name} must be greater than 0, not {resource.weight}"
            yield Problem(f"{path}.resources[{index}].weight", message)


def _node_label(args: NodeLabelArgs, path: str) -> Iterator[Problem]:
    for present, absent in (("presentLabels", "absentLabels"), ("presentLabelsPreference", "absentLabelsPreference")):
        unwanted = getattr(args, absent)
        for index, label in enumerate(getattr(args, present)):
            if label in unwanted:
                yield Problem(f"{path}.{present}[{index}]", f'"{label}" is in {absent}, too')


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str) -> Iterator[Problem]:
    if args.defaultingType not in ("System", "List"):
        yield Problem(f"{path}.defaultingType", _one_of(("System", "List"), args.defaultingType))
    elif args.defaultingType == "System" and args.defaultConstraints:
        yield Problem(f"{path}.defaultingType", "must be List where defaultConstraints are given, not System")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.defaultConstraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        yield from _constraint_problems(constraint, constraint_path)
        key = (constraint.topologyKey, constraint.whenUnsatisfiable)
        if key in seen:
            yield Problem(constraint_path, f"there is already a constraint for {key[0]} and {key[1]}")
        seen.add(key)


def _constraint_problems(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    if constraint.maxSkew <= 0:
        yield Problem(f"{path}.maxSkew", f"must be greater than 0, not {constraint.maxSkew}")
    if not constraint.topologyKey:
        yield Problem(f"{path}.topologyKey", "is required")
    else:
        yield from _name_problems(constraint.topologyKey, f"{path}.topologyKey")
    if not constraint.whenUnsatisfiable:
        yield Problem(f"{path}.whenUnsatisfiable", "is required")
    elif constraint.whenUnsatisfiable not in _UNSATISFIABLE:
        yield Problem(f"{path}.whenUnsatisfiable", _one_of(_UNSATISFIABLE, constraint.whenUnsatisfiable))
    if constraint.labelSelector is not None:
        yield Problem(f"{path}.labelSelector", "must be left out: the selector is deduced for each pod")


def _volume_binding(args: VolumeBindingArgs, path: str, features: Features) -> Iterator[Problem]:
    if args.bindTimeoutSeconds < 0:
        yield Problem(f"{path}.bindTimeoutSeconds", f"must not be negative, as {args.bindTimeoutSeconds} is")
    if features.storage_capacity_scoring:
        yield from _shape_problems(args.shape or (), f"{path}.shape")
    elif args.shape is not None:
        yield Problem(f"{path}.shape", "remove it or turn on the feature gate StorageCapacityScoring")


def _dynamic_resources(args: DynamicResourcesArgs, path: str, features: Features) -> Iterator[Problem]:
    if args.filterTimeout is not None:
        if not features.dra_scheduler_filter_timeout:
            yield Problem(f"{path}.filterTimeout", "remove it or turn on the feature gate DRASchedulerFilterTimeout")
        elif args.filterTimeout < 0:
            yield Problem(f"{path}.filterTimeout", f"must not be negative, as {args.filterTimeout} is")
    if args.bindingTimeout is not None:
        if not (features.dra_device_binding_conditions and features.dra_resource_claim_device_status):
            gates = "DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"
            yield Problem(f"{path}.bindingTimeout", f"remove it or turn on the feature gates {gates}")
        elif args.bindingTimeout < _SECOND:
            yield Problem(f"{path}.bindingTimeout", f"must be at least 1s, not {args.bindingTimeout}")


def _node_affinity(args: NodeAffinityArgs, path: str) -> Iterator[Problem]:
    if args.addedAffinity is None:
        return
    errors: tuple[str, ...] = ()
    required = args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution
    if required is not None:
        required_path = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        errors += compile_node_selector(required, required_path).errors
    preferred_path = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution):
        if preferred.weight != 0:  # a term without weight never counts, so it is not looked at
            # kube-scheduler leaves "preference" out of these paths.
            errors += compile_term(preferred.preference, f"{preferred_path}[{index}]").errors
    for error in errors:
        where, what = re.split(_PATH_ENDS, error, maxsplit=1)
        yield Problem(where, what)


def _shape_problems(shape: tuple[UtilizationShapePoint, ...], path: str) -> Iterator[Problem]:
    if not shape:
        yield Problem(path, "at least one point is required")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            yield Problem(f"{path}[{index}].utilization", "points must be in the order of increasing utilization")
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield Problem(f"{path}[{index}].utilization", f"must be from 0 to 100, not {point.utilization}")
        if not 0 <= point.score <= 10:
            yield Problem(f"{path}[{index}].score", f"must be from 0 to 10, not {point.score}")


def _name_problems(name: str, path: str) -> Iterator[Problem]:
    for problem in key_problems(name):
        yield Problem(path, f'"{name}": {problem}')


def _one_of(accepted: tuple[str, ...], given: str) -> str:
    return f'must be one of {", ".join(accepted)}, not "{given}"'

"""Arguments of the in-tree plugins: types, defaults and validation."""

import re
from collections.abc import Iterable, Iterator
from typing import Self

from msgspec.structs import replace

from kubestow.api.name_formats import key_problems
from kubestow.api.node_selector import compile_node_selector, compile_term
from kubestow.api.pod import NodeAffinity, TopologySpreadConstraint
from kubestow.config.configuration import Int64, Section
from kubestow.config.durations import Duration
from kubestow.config.features import Features
from kubestow.config.problems import Problem

_SECOND = 1_000_000_000
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_PATH_ENDS = ": (?=(?:Invalid|Unsupported) value: )"
_FILTER_TIMEOUT = Duration.parse("10s")
_BINDING_TIMEOUT = Duration.parse("10m")


class ResourceSpec(Section, frozen=True):
    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Section, frozen=True):
    """A point of a scoring function: utilization in percent, score from 0 to 10."""

    utilization: int = 0
    score: int = 0


DEFAULT_RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
_EMPTIEST_VOLUME_FIRST = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class RequestedToCapacityRatioParam(Section, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Section, frozen=True):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requestedToCapacityRatio: RequestedToCapacityRatioParam | None = None


class PluginArgs(Section, frozen=True):
    """Arguments of a plugin. The name of a class is its kind in the file: the name of the plugin and `Args`."""

    def completed(self, _features: Features) -> Self:
        """Return the arguments with the defaults that are not constants."""
        return self

    def problems(self, _path: str, _features: Features) -> Iterator[Problem]:
        """Yield the problems of completed arguments; `_path` is their field in the file."""
        yield from ()


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    minCandidateNodesPercentage: int = 10
    minCandidateNodesAbsolute: int = 100

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        percentage, absolute = self.minCandidateNodesPercentage, self.minCandidateNodesAbsolute
        if not 0 <= percentage <= 100:
            yield Problem(f"{path}.minCandidateNodesPercentage", f"must be from 0 to 100, not {percentage}")
        if absolute < 0:
            yield Problem(f"{path}.minCandidateNodesAbsolute", f"must be at least 0, not {absolute}")
        if percentage == 0 and absolute == 0:
            yield Problem(f"{path}.minCandidateNodesPercentage", "must not be 0 when minCandidateNodesAbsolute is 0")
            yield Problem(f"{path}.minCandidateNodesAbsolute", "must not be 0 when minCandidateNodesPercentage is 0")


class DynamicResourcesArgs(PluginArgs, frozen=True):
    filterTimeout: Duration | None = None
    bindingTimeout: Duration | None = None

    def completed(self, features: Features) -> Self:
        args = self
        if args.filterTimeout is None and features.dra_scheduler_filter_timeout:
            args = replace(args, filterTimeout=_FILTER_TIMEOUT)
        binding_conditions = features.dra_device_binding_conditions and features.dra_resource_claim_device_status
        if args.bindingTimeout is None and binding_conditions:
            args = replace(args, bindingTimeout=_BINDING_TIMEOUT)
        return args

    def problems(self, path: str, features: Features) -> Iterator[Problem]:
        if self.filterTimeout is not None:
            if not features.dra_scheduler_filter_timeout:
                gate = "DRASchedulerFilterTimeout"
                yield Problem(f"{path}.filterTimeout", f"remove it or turn on the feature gate {gate}")
            elif self.filterTimeout < 0:
                yield Problem(f"{path}.filterTimeout", f"must be at least 0, not {self.filterTimeout}")
        if self.bindingTimeout is not None:
            if not (features.dra_device_binding_conditions and features.dra_resource_claim_device_status):
                gates = "DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"
                yield Problem(f"{path}.bindingTimeout", f"remove it or turn on the feature gates {gates}")
            elif self.bindingTimeout < _SECOND:
                yield Problem(f"{path}.bindingTimeout", f"must be at least 1s, not {self.bindingTimeout}")


class InterPodAffinityArgs(PluginArgs, frozen=True):
    hardPodAffinityWeight: int = 1
    ignorePreferredTermsOfExistingPods: bool = False

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        if not 0 <= self.hardPodAffinityWeight <= 100:
            yield Problem(f"{path}.hardPodAffinityWeight", f"must be from 0 to 100, not {self.hardPodAffinityWeight}")


class NodeAffinityArgs(PluginArgs, frozen=True):
    addedAffinity: NodeAffinity | None = None

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        if self.addedAffinity is None:
            return
        errors: tuple[str, ...] = ()
        required = self.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution
        if required is not None:
            required_path = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            errors += compile_node_selector(required, required_path).errors
        preferred_path = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        for index, preferred in enumerate(self.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution):
            if preferred.weight != 0:  # a term without weight has no effect and is not validated
                # kube-scheduler leaves "preference" out of these paths.
                errors += compile_term(preferred.preference, f"{preferred_path}[{index}]").errors
        for error in errors:
            field, message = re.split(_PATH_ENDS, error, maxsplit=1)
            yield Problem(field, message)


class NodeLabelArgs(PluginArgs, frozen=True):
    presentLabels: tuple[str, ...] = ()
    absentLabels: tuple[str, ...] = ()
    presentLabelsPreference: tuple[str, ...] = ()
    absentLabelsPreference: tuple[str, ...] = ()

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        pairs = (("presentLabels", "absentLabels"), ("presentLabelsPreference", "absentLabelsPreference"))
        for present, absent in pairs:
            unwanted = getattr(self, absent)
            for index, label in enumerate(getattr(self, present)):
                if label in unwanted:
                    yield Problem(f"{path}.{present}[{index}]", f'"{label}" is in {absent}, too')


class _ResourcesArgs(PluginArgs, frozen=True):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, _features: Features) -> Self:
        return replace(self, resources=_weighted(self.resources) or DEFAULT_RESOURCES)

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        return _resource_problems(self.resources, path)


class NodeResourcesLeastAllocatedArgs(_ResourcesArgs, frozen=True): ...


class NodeResourcesMostAllocatedArgs(_ResourcesArgs, frozen=True): ...


class NodeResourcesBalancedAllocationArgs(_ResourcesArgs, frozen=True):
    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            if resource.name in seen:
                yield Problem(f"{path}.resources[{index}].name", f'"{resource.name}" is listed more than once')
            seen.add(resource.name)
            if resource.weight != 1:
                yield Problem(f"{path}.resources[{index}].weight", f"must be 1, not {resource.weight}")


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    ignoredResources: tuple[str, ...] = ()
    ignoredResourceGroups: tuple[str, ...] = ()
    scoringStrategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")

    def completed(self, _features: Features) -> Self:
        resources = _weighted(self.scoringStrategy.resources) or DEFAULT_RESOURCES
        return replace(self, scoringStrategy=replace(self.scoringStrategy, resources=resources))

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        for index, name in enumerate(self.ignoredResources):
            yield from _name_problems(name, f"{path}.ignoredResources[{index}]")
        for index, group in enumerate(self.ignoredResourceGroups):
            group_path = f"{path}.ignoredResourceGroups[{index}]"
            if "/" in group:
                yield Problem(group_path, f'the resource group "{group}" must not contain "/"')
            yield from _name_problems(group, group_path)
        strategy, strategy_path = self.scoringStrategy, f"{path}.scoringStrategy"
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


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    defaultConstraints: tuple[TopologySpreadConstraint, ...] = ()
    defaultingType: str = "System"

    def completed(self, _features: Features) -> Self:
        return replace(self, defaultingType=self.defaultingType or "System")

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        if self.defaultingType not in ("System", "List"):
            yield Problem(f"{path}.defaultingType", _one_of(("System", "List"), self.defaultingType))
        elif self.defaultingType == "System" and self.defaultConstraints:
            yield Problem(f"{path}.defaultingType", "must be List if there are defaultConstraints, not System")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.defaultConstraints):
            constraint_path = f"{path}.defaultConstraints[{index}]"
            yield from _constraint_problems(constraint, constraint_path)
            key = (constraint.topologyKey, constraint.whenUnsatisfiable)
            if key in seen:
                yield Problem(constraint_path, f"there is already a constraint for {key[0]} and {key[1]}")
            seen.add(key)


class RequestedToCapacityRatioArgs(PluginArgs, frozen=True):
    """Arguments in which absent resources mean cpu and memory, but an empty list means none."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, _features: Features) -> Self:
        return replace(self, resources=_weighted(self.resources))

    def problems(self, path: str, _features: Features) -> Iterator[Problem]:
        return ratio_problems(self.shape, self.resources, path)


class ServiceAffinityArgs(PluginArgs, frozen=True):
    affinityLabels: tuple[str, ...] = ()
    antiAffinityLabelsPreference: tuple[str, ...] = ()


class VolumeBindingArgs(PluginArgs, frozen=True):
    bindTimeoutSeconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def completed(self, features: Features) -> Self:
        needs_shape = not self.shape and features.storage_capacity_scoring
        return replace(self, shape=_EMPTIEST_VOLUME_FIRST) if needs_shape else self

    def problems(self, path: str, features: Features) -> Iterator[Problem]:
        if self.bindTimeoutSeconds < 0:
            yield Problem(f"{path}.bindTimeoutSeconds", f"must be at least 0, not {self.bindTimeoutSeconds}")
        if features.storage_capacity_scoring:
            yield from _shape_problems(self.shape or (), f"{path}.shape")
        elif self.shape is not None:
            yield Problem(f"{path}.shape", "remove it or turn on the feature gate StorageCapacityScoring")


_KINDS = (*PluginArgs.__subclasses__(), *_ResourcesArgs.__subclasses__())
ARGS_OF_PLUGIN = {kind.__name__.removesuffix("Args"): kind for kind in _KINDS if kind is not _ResourcesArgs}


def ratio_problems(
    shape: tuple[UtilizationShapePoint, ...], resources: Iterable[ResourceSpec], path: str
) -> Iterator[Problem]:
    """Yield the problems of arguments of RequestedToCapacityRatio, in a profile or in a Policy."""
    yield from _shape_problems(shape, f"{path}.shape")
    for index, resource in enumerate(resources):
        if resource.weight < 1:
            message = f"the weight of {resource.name} must be greater than 0, not {resource.weight}"
            yield Problem(f"{path}.resources[{index}].weight", message)


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(replace(resource, weight=resource.weight or 1) for resource in resources)


def _resource_problems(resources: tuple[ResourceSpec, ...], path: str) -> Iterator[Problem]:
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            message = f"the weight of {resource.name} must be from 1 to 100, not {resource.weight}"
            yield Problem(f"{path}.resources[{index}].weight", message)


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

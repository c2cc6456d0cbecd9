"""Feature gates of kube-scheduler v1.37: their names, stages, defaults and dependencies, and which are on.

`Features` holds the state of the gates. It is created once, from the command line, and passed to constructors; each
gate that has an effect here is a field. Gates that kube-scheduler accepts but that have no effect here are in
`other_gates`: setting one is validated and otherwise ignored.

A gate is declared with its history: the stage, default and lock from each minor version on. The entry that applies
depends on the emulated version; `gates_at` returns the gates of a version.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kubestow.config.other_gates import OTHER_GATES
from kubestow.config.versions import NEWEST, Versions

PRE_ALPHA, ALPHA, BETA, GA = "PRE-ALPHA", "ALPHA", "BETA", "GA"

_ALL_OF_STAGE = {"AllAlpha": ALPHA, "AllBeta": BETA}
_COMPONENT = "kube"
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
NOT_BUILT = frozenset(
    {
        "DRANodeAllocatableResources",
    }
)
"""Gates whose feature does not exist here. Turning one on is refused instead of ignored."""
_WITHOUT_EFFECT = {
    ("DRAAdminAccess", False): "administrative access to devices is always possible",
    (
        "DRAPartitionableDevicesType",
        True,
    ): "schedulers do not read the partition types of devices, as in kube-scheduler",
    ("InterPodAffinityHostnameFastPath", True): "affinity terms are always evaluated for all nodes at once",
    ("SchedulerPreQueueingHints", True): "the hint of DynamicResources skips pods that do not name the claim by itself",
    ("VolumeAttributesClass", False): "volumes and claims must always have the same VolumeAttributesClass",
}
"""States of gates that change nothing in a scheduler, with the reason."""


class Gate(msgspec.Struct, frozen=True):
    """A gate at a version. A locked gate cannot be changed; one that is on requires the gates in `needs` to be on."""

    name: str
    stage: str
    default: bool
    locked: bool
    needs: tuple[str, ...]


class FeatureGateError(ValueError):
    """Settings of feature gates are invalid; the message has a line for each fault."""


def _gate_at(declaration: str, versions: Versions) -> Gate:
    """Return the gate as its declaration defines it for the versions."""
    declared, _, needs = declaration.partition(" needs ")
    name, _, history = declared.partition(" ")
    found = Gate(name, PRE_ALPHA, default=False, locked=False, needs=tuple(needs.split()))
    compatible = 0
    for entry in history.split(", "):
        since, stage, default, *more = entry.split()
        # An entry that names no version to be compatible with inherits that of the entry before.
        compatible = _minor(more[-1]) if "compatible" in more else compatible
        if _minor(since) <= versions.emulated and compatible <= versions.compatible:
            found = Gate(name, stage, default == "on", "locked" in more, found.needs)
    return found


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


_declarations: list[str] = []


def _gate(declaration: str) -> bool:
    _declarations.append(declaration)
    return _gate_at(declaration, Versions()).default


class Features(msgspec.Struct, frozen=True):
    """The state of each feature. `Features()` has the defaults."""

    cbor_serving_and_storage: bool = _gate("CBORServingAndStorage 1.32 ALPHA off")
    clearing_nominated_node_name_after_binding: bool = _gate(
        "ClearingNominatedNodeNameAfterBinding 1.34 ALPHA off, 1.35 BETA on"
    )
    component_flagz: bool = _gate("ComponentFlagz 1.32 ALPHA off, 1.36 BETA on")
    component_statusz: bool = _gate("ComponentStatusz 1.32 ALPHA off, 1.36 BETA on")
    composite_pod_group: bool = _gate(
        "CompositePodGroup 1.37 ALPHA off needs GenericWorkload TopologyAwareWorkloadScheduling"
    )
    coordinated_leader_election: bool = _gate("CoordinatedLeaderElection 1.33 BETA off")
    dra_admin_access: bool = _gate("DRAAdminAccess 1.34 BETA on, 1.36 GA on locked needs DynamicResourceAllocation")
    dra_consumable_capacity: bool = _gate(
        "DRAConsumableCapacity 1.34 ALPHA off, 1.36 BETA on needs DynamicResourceAllocation"
    )
    dra_derived_attributes: bool = _gate("DRADerivedAttributes 1.37 ALPHA off needs DynamicResourceAllocation")
    dra_device_binding_conditions: bool = _gate(
        "DRADeviceBindingConditions 1.34 ALPHA off, 1.36 BETA on"
        " needs DRAResourceClaimDeviceStatus DynamicResourceAllocation"
    )
    dra_device_compatibility_groups: bool = _gate(
        "DRADeviceCompatibilityGroups 1.37 ALPHA off needs DRAPartitionableDevices DynamicResourceAllocation"
    )
    dra_device_taint_rules: bool = _gate(
        "DRADeviceTaintRules 1.35 ALPHA off, 1.36 BETA off, 1.37 GA on needs DRADeviceTaints"
    )
    dra_device_taints: bool = _gate(
        "DRADeviceTaints 1.33 ALPHA off, 1.36 BETA on, 1.37 GA on needs DynamicResourceAllocation"
    )
    dra_extended_resource: bool = _gate(
        "DRAExtendedResource 1.34 ALPHA off, 1.36 BETA on, 1.37 GA on locked needs DynamicResourceAllocation"
    )
    dra_fractional_capacity_range: bool = _gate(
        "DRAFractionalCapacityRange 1.37 BETA off, 1.37 BETA on compatible 1.37 needs DRAConsumableCapacity"
    )
    dra_list_type_attributes: bool = _gate("DRAListTypeAttributes 1.36 ALPHA off needs DynamicResourceAllocation")
    dra_node_allocatable_resources: bool = _gate(
        "DRANodeAllocatableResources 1.36 ALPHA off needs DynamicResourceAllocation"
    )
    dra_optional_node_operations: bool = _gate(
        "DRAOptionalNodeOperations 1.37 ALPHA off needs DynamicResourceAllocation NodeDeclaredFeatures"
    )
    dra_partitionable_devices: bool = _gate(
        "DRAPartitionableDevices 1.33 ALPHA off, 1.36 BETA on needs DynamicResourceAllocation"
    )
    dra_partitionable_devices_type: bool = _gate(
        "DRAPartitionableDevicesType 1.37 ALPHA off"
        " needs DRAPartitionableDevices DRAResourcePoolStatus DynamicResourceAllocation"
    )
    dra_prioritized_list: bool = _gate(
        "DRAPrioritizedList 1.34 BETA on, 1.36 GA on, 1.37 GA on locked needs DynamicResourceAllocation"
    )
    dra_resource_claim_device_status: bool = _gate("DRAResourceClaimDeviceStatus 1.33 BETA on, 1.37 GA on locked")
    dra_resource_claim_granular_status_authorization: bool = _gate(
        "DRAResourceClaimGranularStatusAuthorization 1.36 BETA on"
        " needs DRAResourceClaimDeviceStatus DynamicResourceAllocation"
    )
    dra_resource_pool_status: bool = _gate("DRAResourcePoolStatus 1.36 ALPHA off needs DynamicResourceAllocation")
    dra_scheduler_filter_timeout: bool = _gate("DRASchedulerFilterTimeout 1.34 BETA on needs DynamicResourceAllocation")
    dra_workload_resource_claims: bool = _gate(
        "DRAWorkloadResourceClaims 1.36 ALPHA off, 1.37 BETA off needs DynamicResourceAllocation GenericWorkload"
    )
    dynamic_resource_allocation: bool = _gate("DynamicResourceAllocation 1.34 GA on, 1.35 GA on locked")
    generic_workload: bool = _gate("GenericWorkload 1.35 ALPHA off, 1.37 BETA off")
    in_place_pod_level_resources_vertical_scaling: bool = _gate(
        "InPlacePodLevelResourcesVerticalScaling 1.35 ALPHA off, 1.36 BETA on"
        " needs InPlacePodVerticalScaling NodeDeclaredFeatures PodLevelResources"
    )
    in_place_pod_vertical_scaling: bool = _gate("InPlacePodVerticalScaling 1.33 BETA on, 1.35 GA on locked")
    in_place_pod_vertical_scaling_exclusive_cpus: bool = _gate(
        "InPlacePodVerticalScalingExclusiveCPUs 1.32 ALPHA off needs InPlacePodVerticalScaling"
    )
    in_place_pod_vertical_scaling_exclusive_memory: bool = _gate(
        "InPlacePodVerticalScalingExclusiveMemory 1.34 ALPHA off needs InPlacePodVerticalScaling"
    )
    in_place_pod_vertical_scaling_init_containers: bool = _gate(
        "InPlacePodVerticalScalingInitContainers 1.36 BETA on, 1.37 GA on locked"
        " needs InPlacePodVerticalScaling NodeDeclaredFeatures"
    )
    in_place_pod_vertical_scaling_scheduler_preemption: bool = _gate(
        "InPlacePodVerticalScalingSchedulerPreemption 1.37 ALPHA off needs InPlacePodVerticalScaling"
    )
    inter_pod_affinity_hostname_fast_path: bool = _gate("InterPodAffinityHostnameFastPath 1.37 ALPHA off")
    local_storage_capacity_isolation_fs_quota_monitoring: bool = _gate(
        "LocalStorageCapacityIsolationFSQuotaMonitoring 1.31 BETA off"
    )
    match_label_keys_in_pod_affinity: bool = _gate("MatchLabelKeysInPodAffinity 1.33 GA on locked")
    match_label_keys_in_pod_topology_spread: bool = _gate("MatchLabelKeysInPodTopologySpread 1.27 BETA on")
    match_label_keys_in_pod_topology_spread_selector_merge: bool = _gate(
        "MatchLabelKeysInPodTopologySpreadSelectorMerge 1.34 BETA on needs MatchLabelKeysInPodTopologySpread"
    )
    mutable_pv_node_affinity: bool = _gate("MutablePVNodeAffinity 1.35 ALPHA off")
    mutable_scheduling_directives_for_suspended_jobs: bool = _gate(
        "MutableSchedulingDirectivesForSuspendedJobs 1.35 ALPHA off, 1.36 BETA on"
    )
    native_histograms: bool = _gate("NativeHistograms 1.36 ALPHA off, 1.37 BETA on")
    node_declared_features: bool = _gate("NodeDeclaredFeatures 1.35 ALPHA off, 1.36 BETA on, 1.37 GA on locked")
    node_inclusion_policy_in_pod_topology_spread: bool = _gate(
        "NodeInclusionPolicyInPodTopologySpread 1.33 GA on locked"
    )
    nominated_node_name_for_expectation: bool = _gate("NominatedNodeNameForExpectation 1.34 ALPHA off, 1.35 BETA on")
    opportunistic_batching: bool = _gate("OpportunisticBatching 1.35 BETA on")
    pod_group_preemption_policy: bool = _gate("PodGroupPreemptionPolicy 1.37 ALPHA off needs GenericWorkload")
    pod_level_resource_managers: bool = _gate(
        "PodLevelResourceManagers 1.36 ALPHA off, 1.37 BETA off needs PodLevelResources"
    )
    pod_level_resources: bool = _gate("PodLevelResources 1.34 BETA on")
    pod_scheduling_readiness: bool = _gate("PodSchedulingReadiness 1.30 GA on locked")
    scheduler_async_api_calls: bool = _gate("SchedulerAsyncAPICalls 1.34 BETA off")
    scheduler_async_preemption: bool = _gate("SchedulerAsyncPreemption 1.33 BETA on")
    scheduler_pop_from_backoff_q: bool = _gate("SchedulerPopFromBackoffQ 1.33 BETA on")
    scheduler_pre_queueing_hints: bool = _gate("SchedulerPreQueueingHints 1.37 ALPHA off")
    storage_capacity_scoring: bool = _gate("StorageCapacityScoring 1.33 ALPHA off, 1.37 BETA on")
    taint_toleration_comparison_operators: bool = _gate("TaintTolerationComparisonOperators 1.35 ALPHA off")
    topology_aware_workload_scheduling: bool = _gate(
        "TopologyAwareWorkloadScheduling 1.36 ALPHA off needs GenericWorkload"
    )
    volume_attributes_class: bool = _gate("VolumeAttributesClass 1.34 GA on, 1.36 GA on locked")
    volume_limit_scaling: bool = _gate("VolumeLimitScaling 1.35 ALPHA off, 1.37 BETA on")
    watch_list_client: bool = _gate("WatchListClient 1.30 BETA off, 1.35 BETA on")
    windows_cpu_and_memory_affinity: bool = _gate("WindowsCPUAndMemoryAffinity 1.32 ALPHA off")
    workload_with_job: bool = _gate("WorkloadWithJob 1.36 ALPHA off needs GenericWorkload")

    versions: Versions = Versions()

    @classmethod
    def parse(cls, text: str, versions: Versions = Versions()) -> "Features":  # noqa: B008 - frozen
        """Parse `A=true,B=false` as in --feature-gates. Raises FeatureGateError."""
        faults: list[str] = []
        gates = gates_at(versions)
        wanted = _settings(text, faults)
        for name, value in wanted.items():
            gate = gates.get(name)
            refusal = f"cannot set feature gate {name} to {_lower(value)}, feature is"
            if gate is None:
                faults += [] if name in _ALL_OF_STAGE else [f"unrecognized feature gate: {name}"]
            elif gate.locked and value != gate.default:
                faults.append(f"{refusal} locked to {_lower(gate.default)}")
            elif gate.stage == PRE_ALPHA:
                faults.append(f"{refusal} PreAlpha at {versions}")
        if not faults:
            wanted = _with_stages(wanted, gates)
            faults = _unmet_needs(wanted, gates)
        if faults:
            raise FeatureGateError("\n".join(faults))
        state: dict[str, Any] = {_FIELD_OF_GATE[name]: wanted.get(name, gates[name].default) for name in _FIELD_OF_GATE}
        return cls(**state, versions=versions)

    @classmethod
    def running(cls, gates: Mapping[str, bool]) -> "Features":
        """Return the features of a running scheduler that has these gates on or off; all others have their defaults."""
        open_gates = [gate.name for gate in SCHEDULING_GATES if not gate.locked and gate.name in gates]
        state: dict[str, Any] = {_FIELD_OF_GATE[name]: gates[name] for name in open_gates}
        return cls(**state)

    def enabled(self, name: str) -> bool:
        """Return whether the gate of this name is on."""
        on: bool = getattr(self, _FIELD_OF_GATE[name])
        return on

    def warnings(self) -> Iterator[str]:
        """Yield what is to be known about settings that are valid."""
        for (name, state), reason in _WITHOUT_EFFECT.items():
            if self.enabled(name) is state:
                yield f"{name}={_lower(state)} has no effect: {reason}"
        gates = gates_at(self.versions)
        alpha = [name for name in _FIELD_OF_GATE if gates[name].stage == ALPHA and self.enabled(name)]
        if alpha and self.versions.emulated < NEWEST:
            names = " ".join(alpha)
            yield f"component has alpha features enabled in emulated version, this is unsupported: features=[{names}]"


@lru_cache(maxsize=2)
def gates_at(versions: Versions) -> dict[str, Gate]:
    """Return all gates by name as they are at the versions. Gates of later versions are PRE-ALPHA, and off."""
    gates = (_gate_at(declaration, versions) for declaration in (*_declarations, *OTHER_GATES))
    return {gate.name: gate for gate in gates}


GATES = gates_at(Versions())
"""All gates that can be set, by name."""

SCHEDULING_GATES: tuple[Gate, ...] = tuple(GATES.values())[: len(_declarations)]
"""The gates that are fields of `Features`, in the order of the fields."""

_FIELD_OF_GATE = {gate.name: field for gate, field in zip(SCHEDULING_GATES, Features.__struct_fields__, strict=False)}


def _settings(text: str, faults: list[str]) -> dict[str, bool]:
    wanted = {}
    components = set()
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        component, _, gate = (part.strip() for part in name.rpartition(":"))
        components.add(component)
        if component not in ("", _COMPONENT):
            faults.append(f"component not registered: {component}")
        elif not equals:
            faults.append(f"missing bool value for {gate}")
        elif value not in _BOOLEANS:
            faults.append(f'invalid value of {gate}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax')
        else:
            wanted[gate] = _BOOLEANS[value]
    if components >= {"", _COMPONENT}:
        faults.append("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    return wanted


def _with_stages(wanted: dict[str, bool], gates: dict[str, Gate]) -> dict[str, bool]:
    """Expand AllAlpha and AllBeta; gates that are set by name take precedence."""
    whole = {_ALL_OF_STAGE[name]: value for name, value in wanted.items() if name in _ALL_OF_STAGE}
    return {gate.name: whole[gate.stage] for gate in gates.values() if gate.stage in whole} | wanted


def _unmet_needs(wanted: dict[str, bool], gates: dict[str, Gate]) -> list[str]:
    """Return a fault for each gate that is on without the gates that it needs, or without its feature."""
    on = {name for name, gate in gates.items() if wanted.get(name, gate.default)}
    missing = {name: [need for need in gates[name].needs if need not in on] for name in sorted(on)}
    return [
        *(
            f"cannot enable {name}, Kubestow does not have this feature: set {name}=false"
            for name in sorted(on & NOT_BUILT)
        ),
        *(
            f"{name} is enabled, but depends on features that are disabled: [{' '.join(needs)}]"
            for name, needs in missing.items()
            if needs
        ),
    ]


def _lower(value: bool) -> str:
    return "true" if value else "false"

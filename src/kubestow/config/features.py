"""Feature gates of kube-scheduler v1.36: their names, stages, defaults and dependencies, and which are on.

`Features` holds the state of the gates. It is created once, from the command line, and passed to constructors; each
gate that has an effect here is a field. Gates that kube-scheduler accepts but that have no effect here are in
`other_gates`: setting one is validated and otherwise ignored.
"""

from collections.abc import Mapping

import msgspec

from kubestow.config.other_gates import OTHER_GATES

ALPHA, BETA, GA = "ALPHA", "BETA", "GA"

_ALL_OF_STAGE = {"AllAlpha": ALPHA, "AllBeta": BETA}
_COMPONENT = "kube"
_DRA = "DynamicResourceAllocation"
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class Gate(msgspec.Struct, frozen=True):
    """A gate. A locked gate cannot be changed; a gate that is on requires the gates in `needs` to be on, too."""

    name: str
    stage: str
    default: bool
    locked: bool
    needs: tuple[str, ...]


class FeatureGateError(ValueError):
    """Settings of feature gates are invalid; the message has a line for each fault."""


_gates: list[Gate] = []


def _gate(name: str, stage: str, default: bool, *, locked: bool = False, needs: str = "") -> bool:
    _gates.append(Gate(name, stage, default, locked, tuple(needs.split())))
    return default


class Features(msgspec.Struct, frozen=True):
    """The state of each feature. `Features()` has the defaults."""

    clearing_nominated_node_name_after_binding: bool = _gate("ClearingNominatedNodeNameAfterBinding", BETA, True)
    component_flagz: bool = _gate("ComponentFlagz", BETA, True)
    component_statusz: bool = _gate("ComponentStatusz", BETA, True)
    coordinated_leader_election: bool = _gate("CoordinatedLeaderElection", BETA, False)
    dra_admin_access: bool = _gate("DRAAdminAccess", GA, True, locked=True, needs=_DRA)
    dra_consumable_capacity: bool = _gate("DRAConsumableCapacity", BETA, True, needs=_DRA)
    dra_device_binding_conditions: bool = _gate(
        "DRADeviceBindingConditions", BETA, True, needs=f"{_DRA} DRAResourceClaimDeviceStatus"
    )
    dra_device_taint_rules: bool = _gate("DRADeviceTaintRules", BETA, False, needs="DRADeviceTaints")
    dra_device_taints: bool = _gate("DRADeviceTaints", BETA, True, needs=_DRA)
    dra_extended_resource: bool = _gate("DRAExtendedResource", BETA, True, needs=_DRA)
    dra_list_type_attributes: bool = _gate("DRAListTypeAttributes", ALPHA, False, needs=_DRA)
    dra_node_allocatable_resources: bool = _gate("DRANodeAllocatableResources", ALPHA, False, needs=_DRA)
    dra_partitionable_devices: bool = _gate("DRAPartitionableDevices", BETA, True, needs=_DRA)
    dra_prioritized_list: bool = _gate("DRAPrioritizedList", GA, True, needs=_DRA)
    dra_resource_claim_device_status: bool = _gate("DRAResourceClaimDeviceStatus", BETA, True)
    dra_resource_claim_granular_status_authorization: bool = _gate(
        "DRAResourceClaimGranularStatusAuthorization", BETA, True, needs=f"{_DRA} DRAResourceClaimDeviceStatus"
    )
    dra_resource_pool_status: bool = _gate("DRAResourcePoolStatus", ALPHA, False, needs=_DRA)
    dra_scheduler_filter_timeout: bool = _gate("DRASchedulerFilterTimeout", BETA, True, needs=_DRA)
    dra_workload_resource_claims: bool = _gate(
        "DRAWorkloadResourceClaims", ALPHA, False, needs=f"{_DRA} GenericWorkload"
    )
    dynamic_resource_allocation: bool = _gate("DynamicResourceAllocation", GA, True, locked=True)
    gang_scheduling: bool = _gate("GangScheduling", ALPHA, False, needs="GenericWorkload")
    generic_workload: bool = _gate("GenericWorkload", ALPHA, False)
    in_place_pod_level_resources_vertical_scaling: bool = _gate(
        "InPlacePodLevelResourcesVerticalScaling",
        BETA,
        True,
        needs="InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures",
    )
    in_place_pod_vertical_scaling: bool = _gate("InPlacePodVerticalScaling", GA, True, locked=True)
    in_place_pod_vertical_scaling_exclusive_cpus: bool = _gate(
        "InPlacePodVerticalScalingExclusiveCPUs", ALPHA, False, needs="InPlacePodVerticalScaling"
    )
    in_place_pod_vertical_scaling_exclusive_memory: bool = _gate(
        "InPlacePodVerticalScalingExclusiveMemory", ALPHA, False, needs="InPlacePodVerticalScaling"
    )
    in_place_pod_vertical_scaling_init_containers: bool = _gate(
        "InPlacePodVerticalScalingInitContainers", BETA, True, needs="InPlacePodVerticalScaling NodeDeclaredFeatures"
    )
    local_storage_capacity_isolation_fs_quota_monitoring: bool = _gate(
        "LocalStorageCapacityIsolationFSQuotaMonitoring", BETA, False
    )
    match_label_keys_in_pod_affinity: bool = _gate("MatchLabelKeysInPodAffinity", GA, True, locked=True)
    match_label_keys_in_pod_topology_spread: bool = _gate("MatchLabelKeysInPodTopologySpread", BETA, True)
    match_label_keys_in_pod_topology_spread_selector_merge: bool = _gate(
        "MatchLabelKeysInPodTopologySpreadSelectorMerge", BETA, True, needs="MatchLabelKeysInPodTopologySpread"
    )
    mutable_pv_node_affinity: bool = _gate("MutablePVNodeAffinity", ALPHA, False)
    mutable_scheduling_directives_for_suspended_jobs: bool = _gate(
        "MutableSchedulingDirectivesForSuspendedJobs", BETA, True
    )
    native_histograms: bool = _gate("NativeHistograms", ALPHA, False)
    node_declared_features: bool = _gate("NodeDeclaredFeatures", BETA, True)
    node_inclusion_policy_in_pod_topology_spread: bool = _gate(
        "NodeInclusionPolicyInPodTopologySpread", GA, True, locked=True
    )
    nominated_node_name_for_expectation: bool = _gate("NominatedNodeNameForExpectation", BETA, True)
    opportunistic_batching: bool = _gate("OpportunisticBatching", BETA, True)
    pod_level_resource_managers: bool = _gate("PodLevelResourceManagers", ALPHA, False, needs="PodLevelResources")
    pod_level_resources: bool = _gate("PodLevelResources", BETA, True)
    pod_scheduling_readiness: bool = _gate("PodSchedulingReadiness", GA, True, locked=True)
    scheduler_async_api_calls: bool = _gate("SchedulerAsyncAPICalls", BETA, False)
    scheduler_async_preemption: bool = _gate("SchedulerAsyncPreemption", BETA, True)
    scheduler_pop_from_backoff_q: bool = _gate("SchedulerPopFromBackoffQ", BETA, True)
    scheduler_queueing_hints: bool = _gate("SchedulerQueueingHints", GA, True, locked=True)
    sidecar_containers: bool = _gate("SidecarContainers", GA, True, locked=True)
    storage_capacity_scoring: bool = _gate("StorageCapacityScoring", ALPHA, False)
    taint_toleration_comparison_operators: bool = _gate("TaintTolerationComparisonOperators", ALPHA, False)
    topology_aware_workload_scheduling: bool = _gate(
        "TopologyAwareWorkloadScheduling", ALPHA, False, needs="GenericWorkload"
    )
    volume_attributes_class: bool = _gate("VolumeAttributesClass", GA, True, locked=True)
    volume_limit_scaling: bool = _gate("VolumeLimitScaling", ALPHA, False)
    watch_list_client: bool = _gate("WatchListClient", BETA, True)
    windows_cpu_and_memory_affinity: bool = _gate("WindowsCPUAndMemoryAffinity", ALPHA, False)
    workload_aware_preemption: bool = _gate("WorkloadAwarePreemption", ALPHA, False, needs="GangScheduling")
    workload_with_job: bool = _gate("WorkloadWithJob", ALPHA, False, needs="GenericWorkload")

    @classmethod
    def parse(cls, text: str) -> "Features":
        """Parse `A=true,B=false` as in --feature-gates. Raises FeatureGateError."""
        faults: list[str] = []
        wanted = _settings(text, faults)
        for name, value in wanted.items():
            gate = GATES.get(name)
            if gate is None and name not in _ALL_OF_STAGE:
                faults.append(f"unrecognized feature gate: {name}")
            elif gate is not None and gate.locked and value != gate.default:
                faults.append(
                    f"cannot set feature gate {name} to {_lower(value)}: it is locked to {_lower(gate.default)}"
                )
        if not faults:
            wanted = _with_stages(wanted)
            faults = _unmet_needs(wanted)
        if faults:
            raise FeatureGateError("\n".join(faults))
        return cls(**{field: wanted[name] for name, field in _FIELD_OF_GATE.items() if name in wanted})

    @classmethod
    def running(cls, gates: Mapping[str, bool]) -> "Features":
        """Return the features of a running scheduler that has these gates on or off; all others have their defaults."""
        open_gates = {gate.name: _FIELD_OF_GATE[gate.name] for gate in SCHEDULING_GATES if not gate.locked}
        return cls(**{field: gates[name] for name, field in open_gates.items() if name in gates})

    def enabled(self, name: str) -> bool:
        """Return whether the gate of this name is on."""
        on: bool = getattr(self, _FIELD_OF_GATE[name])
        return on


SCHEDULING_GATES: tuple[Gate, ...] = tuple(_gates)
"""The gates that are fields of `Features`, in the order of the fields."""

_FIELD_OF_GATE = {gate.name: field for gate, field in zip(SCHEDULING_GATES, Features.__struct_fields__, strict=True)}

GATES: dict[str, Gate] = {gate.name: gate for gate in (*SCHEDULING_GATES, *(Gate(*row) for row in OTHER_GATES))}
"""All gates that can be set, by name."""


def _settings(text: str, faults: list[str]) -> dict[str, bool]:
    wanted = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        component, colon, gate = name.rpartition(":")
        if colon and component != _COMPONENT:
            faults.append(f'unknown component "{component}" in "{item}": only {_COMPONENT} has feature gates here')
        elif not equals:
            faults.append(f"missing value for feature gate {gate}: write {gate}=true or =false")
        elif value not in _BOOLEANS:
            faults.append(f'invalid value for feature gate {gate}: must be true or false, not "{value}"')
        else:
            wanted[gate] = _BOOLEANS[value]
    return wanted


def _with_stages(wanted: dict[str, bool]) -> dict[str, bool]:
    """Expand AllAlpha and AllBeta; gates that are set by name take precedence."""
    whole = {_ALL_OF_STAGE[name]: value for name, value in wanted.items() if name in _ALL_OF_STAGE}
    return {gate.name: whole[gate.stage] for gate in GATES.values() if gate.stage in whole} | wanted


def _unmet_needs(wanted: dict[str, bool]) -> list[str]:
    on = {name for name, gate in GATES.items() if wanted.get(name, gate.default)}
    missing = {name: [need for need in GATES[name].needs if need not in on] for name in sorted(on)}
    return [f"{name} is on but needs {', '.join(needs)}, which is off" for name, needs in missing.items() if needs]


def _lower(value: bool) -> str:
    return "true" if value else "false"

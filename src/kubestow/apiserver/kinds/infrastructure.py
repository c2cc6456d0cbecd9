"""Kinds of infrastructure: scheduling, storage, devices, leases, runtimes, addresses."""

from functools import partial

from kubestow.apiserver.kinds import conversions
from kubestow.apiserver.kinds.resource import Resource, Rules, set_status
from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.columns import boolean_at, count, joined_at, number_at, printed, value_at
from kubestow.apiserver.rules import claim_defaults, cluster, devices, networking, pod_groups, policy, slices, storage
from kubestow.apiserver.rules.causes import immutable
from kubestow.apiserver.rules.defaults import fill

_storage = partial(Resource, "storage.k8s.io/v1", cluster=True)
_devices = partial(Resource, "resource.k8s.io/v1")
_networking = partial(Resource, "networking.k8s.io/v1")
_FROM_ALPHA = conversions.between("scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1beta1")
_pod_groups = partial(
    Resource,
    names="PodGroup podgroups",
    subresources="status",
    rules=Rules(
        pod_groups.default_group,
        validate=pod_groups.validate_group,
        validate_update=pod_groups.validate_group_update,
        validate_status=pod_groups.validate_group_status,
        drop_disabled_fields=pod_groups.drop_disabled_fields,
    ),
    columns=printed(
        ("Policy", cells.group_policy), ("Workload", "spec.workloadRef.workloadName"), ("Status", cells.group_status)
    ),
    kept_with_status=None,
)
_workloads = partial(
    Resource,
    names="Workload workloads",
    rules=Rules(
        validate=pod_groups.validate_workload,
        validate_update=pod_groups.validate_workload_update,
        drop_disabled_fields=pod_groups.drop_disabled_template_fields,
    ),
)
_taint_rules = partial(
    Resource,
    names="DeviceTaintRule devicetaintrules",
    subresources="status",
    cluster=True,
    generation=True,
    rules=Rules(validate=slices.validate_taint_rule, set_timestamps=slices.set_taint_rule_time),
)

KINDS = (
    Resource(
        "scheduling.k8s.io/v1",
        "PriorityClass priorityclasses pc",
        cluster=True,
        generation=True,
        rules=Rules(
            fill(value=0, preemptionPolicy="PreemptLowerPriority"),
            validate=policy.validate_priority_class,
            validate_update=policy.validate_priority_class_update,
        ),
        columns=printed(
            ("Value", number_at("value")),
            ("Global-Default", boolean_at("globalDefault")),
            after=(("PreemptionPolicy", "preemptionPolicy"),),
        ),
    ),
    _pod_groups("scheduling.k8s.io/v1beta1"),
    _workloads("scheduling.k8s.io/v1beta1"),
    _pod_groups("scheduling.k8s.io/v1alpha3", conversion=_FROM_ALPHA),
    _workloads("scheduling.k8s.io/v1alpha3", conversion=_FROM_ALPHA),
    Resource(
        "scheduling.k8s.io/v1alpha3",
        "CompositePodGroup compositepodgroups",
        "status",
        rules=Rules(
            pod_groups.default_group,
            validate=pod_groups.validate_composite_group,
            validate_update=pod_groups.validate_composite_group_update,
            validate_status=pod_groups.validate_group_status,
            drop_disabled_fields=pod_groups.drop_disabled_fields,
        ),
        columns=printed(("Policy", cells.group_policy), ("Workload", "spec.workloadRef.workloadName")),
        kept_with_status=None,
    ),
    _storage(
        "StorageClass storageclasses sc",
        rules=Rules(
            fill(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
            validate_update=immutable("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
        ),
        columns=printed(
            ("Provisioner", "provisioner"),
            ("ReclaimPolicy", "reclaimPolicy"),
            ("VolumeBindingMode", "volumeBindingMode"),
            ("AllowVolumeExpansion", boolean_at("allowVolumeExpansion")),
        ),
    ),
    _storage("CSINode csinodes", columns=printed(("Drivers", count("spec.drivers")))),
    _storage(
        "CSIDriver csidrivers",
        rules=Rules(storage.default_driver),
        columns=printed(
            ("AttachRequired", boolean_at("spec.attachRequired", none=True)),
            ("PodInfoOnMount", boolean_at("spec.podInfoOnMount")),
            ("StorageCapacity", boolean_at("spec.storageCapacity")),
            ("TokenRequests", joined_at("spec.tokenRequests", "audience", "<unset>")),
            ("RequiresRepublish", boolean_at("spec.requiresRepublish")),
            ("Modes", lambda obj: cells.joined(obj.get("spec", {}).get("volumeLifecycleModes", ()))),
        ),
    ),
    _storage("CSIStorageCapacity csistoragecapacities", cluster=False),
    _storage(
        "VolumeAttachment volumeattachments",
        "status",
        columns=printed(
            ("Attacher", "spec.attacher"),
            ("PV", "spec.source.persistentVolumeName"),
            ("Node", "spec.nodeName"),
            ("Attached", boolean_at("status.attached")),
        ),
        kept_with_status=None,
    ),
    _storage(
        "VolumeAttributesClass volumeattributesclasses vac",
        rules=Rules(validate_update=immutable("driverName", "parameters")),
        columns=printed(("DriverName", "driverName")),
    ),
    Resource(
        "coordination.k8s.io/v1",
        "Lease leases",
        rules=Rules(validate=cluster.validate_lease),
        columns=printed(("Holder", value_at("spec.holderIdentity", none=""))),
    ),
    Resource(
        "discovery.k8s.io/v1",
        "EndpointSlice endpointslices",
        generation=True,
        rules=Rules(
            networking.default_slice, validate=networking.validate_slice, validate_update=immutable("addressType")
        ),
        columns=printed(
            ("AddressType", "addressType"), ("Ports", cells.slice_ports), ("Endpoints", cells.slice_addresses)
        ),
    ),
    _devices(
        "ResourceClaim resourceclaims",
        "status",
        rules=Rules(
            claim_defaults.default_claim,
            validate=devices.validate_claim,
            validate_update=devices.validate_spec_update,
            prepare_status=devices.drop_device_status,
            validate_status=devices.validate_claim_status,
            validate_in_namespace=devices.require_admin_label,
            validate_with_gates=devices.compile_claim,
        ),
        columns=printed(("State", cells.claim_state)),
        kept_with_status=None,
    ),
    _devices(
        "ResourceClaimTemplate resourceclaimtemplates",
        rules=Rules(
            claim_defaults.default_template,
            validate=devices.validate_template,
            validate_update=devices.validate_spec_update,
            validate_in_namespace=devices.require_admin_label,
            validate_with_gates=devices.compile_claim,
        ),
    ),
    _devices(
        "ResourceSlice resourceslices",
        cluster=True,
        generation=True,
        selectable="spec.nodeName spec.driver spec.pool.name",
        rules=Rules(
            validate=slices.validate_slice,
            validate_update=slices.validate_slice_update,
            drop_disabled_fields=slices.drop_disabled_fields,
            set_timestamps=slices.set_taint_times,
        ),
        columns=printed(("Node", "spec.nodeName"), ("Driver", "spec.driver"), ("Pool", "spec.pool.name")),
    ),
    _devices(
        "DeviceClass deviceclasses",
        cluster=True,
        generation=True,
        rules=Rules(validate=devices.validate_class, validate_with_gates=devices.compile_class),
    ),
    _taint_rules("resource.k8s.io/v1"),
    _taint_rules(
        "resource.k8s.io/v1beta2", conversion=conversions.between("resource.k8s.io/v1beta2", "resource.k8s.io/v1")
    ),
    Resource(
        "node.k8s.io/v1",
        "RuntimeClass runtimeclasses",
        cluster=True,
        rules=Rules(validate=cluster.validate_runtime_class, validate_update=immutable("handler")),
        columns=printed(("Handler", "handler")),
    ),
    _networking(
        "Ingress ingresses ing",
        "status",
        generation=True,
        rules=Rules(fill(spec={}), set_status(loadBalancer={}), validate=networking.validate_ingress),
        columns=printed(
            ("Class", "spec.ingressClassName"),
            ("Hosts", cells.ingress_hosts),
            ("Address", cells.balanced),
            ("Ports", lambda obj: "80, 443" if obj.get("spec", {}).get("tls") else "80"),
        ),
    ),
    _networking(
        "IngressClass ingressclasses",
        cluster=True,
        generation=True,
        columns=printed(("Controller", "spec.controller"), ("Parameters", cells.class_parameters)),
    ),
    _networking(
        "NetworkPolicy networkpolicies netpol",
        generation=True,
        rules=Rules(networking.default_policy, validate=networking.validate_policy),
        columns=printed(("Pod-Selector", lambda obj: cells.selector(obj.get("spec", {}).get("podSelector")))),
    ),
    _networking(
        "ServiceCIDR servicecidrs",
        "status",
        cluster=True,
        rules=Rules(validate=networking.validate_range, validate_update=networking.validate_range_update),
        columns=printed(("CIDRs", lambda obj: cells.joined(obj.get("spec", {}).get("cidrs", ())))),
    ),
    _networking(
        "IPAddress ipaddresses ip",
        cluster=True,
        selectable="spec.parentRef.name",
        rules=Rules(validate=networking.validate_address, valid_name=networking.address),
        columns=printed(("ParentRef", cells.address_parent)),
    ),
)

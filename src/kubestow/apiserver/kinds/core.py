"""Kinds of the core group, and events in both of their groups."""

from functools import partial

from kubestow.apiserver.kinds import conversions
from kubestow.apiserver.kinds.resource import Resource, Rules, set_status
from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.columns import WORKLOAD, column, count, number_at, printed, value_at
from kubestow.apiserver.rules import cluster, configuration, limits, names, pods, services, storage, workloads
from kubestow.apiserver.rules.causes import immutable

ALL = ("all",)
_EVENT_FIELDS = (
    "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion "
    "involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent "
    "source=source.component|reportingComponent type"
)
_NEW_EVENT_FIELDS = (
    "regarding.kind=involvedObject.kind regarding.namespace=involvedObject.namespace "
    "regarding.name=involvedObject.name regarding.uid=involvedObject.uid "
    "regarding.apiVersion=involvedObject.apiVersion regarding.resourceVersion=involvedObject.resourceVersion "
    "regarding.fieldPath=involvedObject.fieldPath reason reportingController=reportingComponent "
    "source=source.component|reportingComponent type"
)
_events = partial(
    Resource,
    names="Event events ev",
    rules=Rules(
        cluster.default_event,
        prepare_create=lambda _: None,
        validate=cluster.validate_event,
        valid_name=names.path_segment,
    ),
    columns=(
        column("Last Seen", cells.last_seen),
        column("Type", value_at("type", none="")),
        column("Reason", value_at("reason", none="")),
        column("Object", cells.event_object),
        column("+Subobject", value_at("involvedObject.fieldPath", none="")),
        column("+Source", cells.event_source),
        column("Message", lambda obj: str(obj.get("message", "")).strip()),
        column("+First Seen", lambda obj: cells.age(obj.get("firstTimestamp") or obj.get("eventTime"))),
        column("+Count", lambda obj: obj.get("series", {}).get("count") or obj.get("count") or 1),
        column("+Name", "metadata.name"),
    ),
)
_core = partial(Resource, "v1")

KINDS = (
    _core(
        "Pod pods po",
        "status binding eviction log exec attach portforward resize ephemeralcontainers",
        generation=True,
        categories=ALL,
        selectable="spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork "
        "status.phase status.podIP status.nominatedNodeName",
        rules=Rules(
            pods.default,
            pods.prepare_create,
            validate=pods.validate,
            validate_update=pods.validate_update,
            prepare_status=pods.keep_claims,
        ),
        columns=printed(
            ("Ready", cells.ready_count),
            ("Status", cells.pod_status),
            ("Restarts", cells.restarts),
            wide=(
                ("IP", "status.podIP"),
                ("Node", "spec.nodeName"),
                ("Nominated Node", "status.nominatedNodeName"),
                ("Readiness Gates", cells.readiness_gates),
            ),
        ),
        kept_with_status=("ownerReferences",),
    ),
    _core("Binding bindings", verbs=("create",)),
    _core("PodTemplate podtemplates", generation=True, rules=Rules(workloads.default_template)),
    _core(
        "Node nodes no",
        "status",
        cluster=True,
        selectable="spec.unschedulable",
        # A node is created with its status, as nodes register themselves.
        rules=Rules(
            cluster.default_node,
            lambda _: None,
            validate=cluster.validate_node,
            validate_status=cluster.validate_node_status,
            drop_disabled_fields=cluster.drop_preemption_policy,
        ),
        columns=printed(
            ("Status", cells.node_status),
            ("Roles", cells.node_roles),
            after=(("Version", "status.nodeInfo.kubeletVersion"),),
            wide=(
                ("Internal-IP", lambda obj: cells.address(obj, "InternalIP")),
                ("External-IP", lambda obj: cells.address(obj, "ExternalIP")),
                ("OS-Image", "status.nodeInfo.osImage"),
                ("Kernel-Version", "status.nodeInfo.kernelVersion"),
                ("Container-Runtime", "status.nodeInfo.containerRuntimeVersion"),
            ),
        ),
    ),
    _core(
        "Namespace namespaces ns",
        "status finalize",
        cluster=True,
        selectable="status.phase",
        rules=Rules(cluster.default_namespace, cluster.prepare_namespace, valid_name=names.dns_label),
        columns=printed(("Status", "status.phase")),
    ),
    _core(
        "Service services svc",
        "status",
        categories=ALL,
        selectable="spec.clusterIP spec.type",
        rules=Rules(
            services.default_service,
            set_status(loadBalancer={}),
            services.allocate_address,
            services.validate_service,
            services.keep_cluster_ip,
            services.validate_service_update,
            valid_name=names.dns_label,
        ),
        columns=printed(
            ("Type", "spec.type"),
            ("Cluster-IP", "spec.clusterIP"),
            ("External-IP", cells.external_address),
            ("Port(s)", cells.service_ports),
            wide=(("Selector", lambda obj: cells.plain_selector(obj.get("spec", {}).get("selector"))),),
        ),
    ),
    _core("Endpoints endpoints ep", columns=printed(("Endpoints", cells.endpoints))),
    _core(
        "ConfigMap configmaps cm",
        rules=Rules(validate=configuration.validate_config_map, validate_update=configuration.validate_immutable),
        columns=printed(("Data", lambda obj: len(obj.get("data", {})) + len(obj.get("binaryData", {})))),
    ),
    _core(
        "Secret secrets",
        selectable="type",
        rules=Rules(
            configuration.default_secret,
            validate=configuration.validate_secret,
            validate_update=configuration.validate_secret_update,
        ),
        columns=printed(("Type", "type"), ("Data", count("data"))),
    ),
    _core("ServiceAccount serviceaccounts sa", "token", columns=printed(("Secrets", count("secrets")))),
    _core(
        "PersistentVolume persistentvolumes pv",
        "status",
        cluster=True,
        rules=Rules(
            storage.default_volume,
            set_status(phase="Pending"),
            validate=storage.validate_volume,
            validate_update=storage.validate_volume_update,
        ),
        columns=printed(
            ("Capacity", "spec.capacity.storage"),
            ("Access Modes", lambda obj: cells.access_modes(obj.get("spec", {}).get("accessModes", ()))),
            ("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
            ("Status", "status.phase"),
            ("Claim", cells.claim_of),
            ("StorageClass", value_at("spec.storageClassName", none="")),
            ("VolumeAttributesClass", value_at("spec.volumeAttributesClassName", none="<unset>")),
            ("Reason", value_at("status.reason", none="")),
            wide=(("VolumeMode", "spec.volumeMode"),),
        ),
    ),
    _core(
        "PersistentVolumeClaim persistentvolumeclaims pvc",
        "status",
        rules=Rules(
            storage.default_claim,
            set_status(phase="Pending"),
            validate=storage.validate_claim,
            validate_update=storage.validate_claim_update,
        ),
        columns=printed(
            ("Status", "status.phase"),
            ("Volume", value_at("spec.volumeName", none="")),
            ("Capacity", value_at("status.capacity.storage", none="")),
            ("Access Modes", lambda obj: cells.access_modes(obj.get("status", {}).get("accessModes", ()))),
            ("StorageClass", value_at("spec.storageClassName", none="")),
            ("VolumeAttributesClass", value_at("spec.volumeAttributesClassName", none="<unset>")),
            wide=(("VolumeMode", "spec.volumeMode"),),
        ),
    ),
    _events("v1", selectable=_EVENT_FIELDS),
    _events("events.k8s.io/v1", storage="events", conversion=conversions.NEW_EVENTS, selectable=_NEW_EVENT_FIELDS),
    _core("LimitRange limitranges limits", rules=Rules(limits.default_limits, validate=limits.validate_limits)),
    _core(
        "ResourceQuota resourcequotas quota",
        "status",
        rules=Rules(
            prepare_create=set_status(), validate=limits.validate_quota, validate_update=immutable("scopes", of="spec")
        ),
        columns=printed(
            ("Request", lambda obj: cells.quota(obj, limits=False)),
            ("Limit", lambda obj: cells.quota(obj, limits=True)),
        ),
    ),
    _core(
        "ReplicationController replicationcontrollers rc",
        "status scale",
        generation=True,
        categories=ALL,
        rules=Rules(workloads.default_replication_controller, validate=workloads.validate_replication_controller),
        columns=printed(
            ("Desired", number_at("spec.replicas")),
            ("Current", number_at("status.replicas")),
            ("Ready", number_at("status.readyReplicas")),
            wide=(
                *WORKLOAD[:2],
                ("Selector", lambda obj: cells.plain_selector(obj.get("spec", {}).get("selector"))),
            ),
        ),
    ),
)

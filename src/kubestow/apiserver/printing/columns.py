"""Columns of each resource: name, value, and whether only `-o wide` shows it (a name that begins with +)."""

from collections.abc import Callable
from typing import Any

from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.cells import NONE, Object

Columns = tuple[tuple[str, Callable[[Object], Any]], ...]


def at(*path: str, none: Any = NONE) -> Callable[[Object], Any]:
    """The value at a path."""

    def value(obj: Object) -> Any:
        found: Any = obj
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return none if found is None else found

    return value


def _template(obj: Object) -> Object:
    template: Object = obj.get("spec", {}).get("template", {})
    return template


def _workload_wide(plain: bool = False) -> Columns:
    def selected(obj: Object) -> str:
        spec = obj.get("spec", {}).get("selector")
        return cells.plain_selector(spec) if plain else cells.selector(spec)

    return (
        ("+Containers", lambda obj: cells.containers(_template(obj))),
        ("+Images", lambda obj: cells.images(_template(obj))),
        ("+Selector", selected),
    )


def _age(obj: Object) -> str:
    return cells.age(obj["metadata"].get("creationTimestamp"))


AGE = ("Age", _age)
NAME = ("Name", at("metadata", "name"))


def _zero(*path: str) -> Callable[[Object], Any]:
    return at(*path, none=0)


def _replica_columns(plain: bool) -> Columns:
    return (
        NAME,
        ("Desired", _zero("spec", "replicas")),
        ("Current", _zero("status", "replicas")),
        ("Ready", _zero("status", "readyReplicas")),
        AGE,
        *_workload_wide(plain),
    )


def _claim_of(volume: Object) -> str:
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


def _nominated(pod: Object) -> Any:
    return at("status", "nominatedNodeName")(pod)


def _gates(pod: Object) -> str:
    gates = pod.get("spec", {}).get("readinessGates", ())
    if not gates:
        return NONE
    true = {one["type"] for one in pod.get("status", {}).get("conditions", ()) if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


COLUMNS: dict[str, Columns] = {
    "pods": (
        NAME,
        ("Ready", cells.ready_count),
        ("Status", cells.pod_status),
        ("Restarts", cells.restarts),
        AGE,
        ("+IP", at("status", "podIP")),
        ("+Node", at("spec", "nodeName")),
        ("+Nominated Node", _nominated),
        ("+Readiness Gates", _gates),
    ),
    "nodes": (
        NAME,
        ("Status", cells.node_status),
        ("Roles", cells.node_roles),
        AGE,
        ("Version", at("status", "nodeInfo", "kubeletVersion")),
        ("+Internal-IP", lambda obj: cells.address(obj, "InternalIP")),
        ("+External-IP", lambda obj: cells.address(obj, "ExternalIP")),
        ("+OS-Image", at("status", "nodeInfo", "osImage")),
        ("+Kernel-Version", at("status", "nodeInfo", "kernelVersion")),
        ("+Container-Runtime", at("status", "nodeInfo", "containerRuntimeVersion")),
    ),
    "namespaces": (NAME, ("Status", at("status", "phase")), AGE),
    "services": (
        NAME,
        ("Type", at("spec", "type")),
        ("Cluster-IP", at("spec", "clusterIP")),
        ("External-IP", cells.external_address),
        ("Port(s)", cells.service_ports),
        AGE,
        ("+Selector", lambda obj: cells.plain_selector(obj.get("spec", {}).get("selector"))),
    ),
    "configmaps": (NAME, ("Data", lambda obj: len(obj.get("data", {})) + len(obj.get("binaryData", {}))), AGE),
    "secrets": (NAME, ("Type", at("type")), ("Data", lambda obj: len(obj.get("data", {}))), AGE),
    "endpoints": (NAME, ("Endpoints", cells.endpoints), AGE),
    "endpointslices.discovery.k8s.io": (
        NAME,
        ("AddressType", at("addressType")),
        ("Ports", cells.slice_ports),
        ("Endpoints", cells.slice_addresses),
        AGE,
    ),
    "resourcequotas": (
        NAME,
        ("Request", lambda obj: cells.quota(obj, limits=False)),
        ("Limit", lambda obj: cells.quota(obj, limits=True)),
        AGE,
    ),
    "controllerrevisions.apps": (NAME, ("Controller", cells.controller), ("Revision", _zero("revision")), AGE),
    "persistentvolumes": (
        NAME,
        ("Capacity", at("spec", "capacity", "storage")),
        ("Access Modes", lambda obj: cells.access_modes(obj.get("spec", {}).get("accessModes", ()))),
        ("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
        ("Status", at("status", "phase")),
        ("Claim", _claim_of),
        ("StorageClass", at("spec", "storageClassName", none="")),
        ("VolumeAttributesClass", at("spec", "volumeAttributesClassName", none="<unset>")),
        ("Reason", at("status", "reason", none="")),
        AGE,
        ("+VolumeMode", at("spec", "volumeMode")),
    ),
    "persistentvolumeclaims": (
        NAME,
        ("Status", at("status", "phase")),
        ("Volume", at("spec", "volumeName", none="")),
        ("Capacity", at("status", "capacity", "storage", none="")),
        ("Access Modes", lambda obj: cells.access_modes(obj.get("status", {}).get("accessModes", ()))),
        ("StorageClass", at("spec", "storageClassName", none="")),
        ("VolumeAttributesClass", at("spec", "volumeAttributesClassName", none="<unset>")),
        AGE,
        ("+VolumeMode", at("spec", "volumeMode")),
    ),
    "events": (
        ("Last Seen", cells.last_seen),
        ("Type", at("type", none="")),
        ("Reason", at("reason", none="")),
        (
            "Object",
            lambda obj: f"{obj['involvedObject'].get('kind', '').lower()}/{obj['involvedObject'].get('name', '')}",
        ),
        ("+Subobject", at("involvedObject", "fieldPath", none="")),
        ("+Source", cells.event_source),
        ("Message", lambda obj: str(obj.get("message", "")).strip()),
        ("+First Seen", lambda obj: cells.age(obj.get("firstTimestamp") or obj.get("eventTime"))),
        ("+Count", lambda obj: obj.get("series", {}).get("count") or obj.get("count") or 1),
        ("+Name", at("metadata", "name")),
    ),
    "replicationcontrollers": _replica_columns(plain=True),
    "replicasets.apps": _replica_columns(plain=False),
    "deployments.apps": (
        NAME,
        ("Ready", lambda obj: f"{_zero('status', 'readyReplicas')(obj)}/{_zero('spec', 'replicas')(obj)}"),
        ("Up-to-date", _zero("status", "updatedReplicas")),
        ("Available", _zero("status", "availableReplicas")),
        AGE,
        *_workload_wide(),
    ),
    "statefulsets.apps": (
        NAME,
        ("Ready", lambda obj: f"{_zero('status', 'readyReplicas')(obj)}/{_zero('spec', 'replicas')(obj)}"),
        AGE,
        *_workload_wide()[:2],
    ),
    "daemonsets.apps": (
        NAME,
        ("Desired", _zero("status", "desiredNumberScheduled")),
        ("Current", _zero("status", "currentNumberScheduled")),
        ("Ready", _zero("status", "numberReady")),
        ("Up-to-date", _zero("status", "updatedNumberScheduled")),
        ("Available", _zero("status", "numberAvailable")),
        ("Node Selector", lambda obj: cells.plain_selector(_template(obj).get("spec", {}).get("nodeSelector"))),
        AGE,
        *_workload_wide(),
    ),
    "jobs.batch": (
        NAME,
        ("Status", cells.job_status),
        ("Completions", cells.job_completions),
        ("Duration", cells.job_duration),
        AGE,
        *_workload_wide(),
    ),
    "cronjobs.batch": (
        NAME,
        ("Schedule", at("spec", "schedule")),
        ("Timezone", at("spec", "timeZone")),
        ("Suspend", lambda obj: str(bool(obj.get("spec", {}).get("suspend")))),
        ("Active", lambda obj: len(obj.get("status", {}).get("active", ()))),
        (
            "Last Schedule",
            lambda obj: (
                cells.age(obj["status"]["lastScheduleTime"]) if obj.get("status", {}).get("lastScheduleTime") else NONE
            ),
        ),
        AGE,
        ("+Containers", lambda obj: cells.containers(_template(obj["spec"].get("jobTemplate", {})))),
        ("+Images", lambda obj: cells.images(_template(obj["spec"].get("jobTemplate", {})))),
        ("+Selector", lambda obj: cells.selector(obj["spec"].get("jobTemplate", {}).get("spec", {}).get("selector"))),
    ),
    "poddisruptionbudgets.policy": (
        NAME,
        ("Min Available", at("spec", "minAvailable", none="N/A")),
        ("Max Unavailable", at("spec", "maxUnavailable", none="N/A")),
        ("Allowed Disruptions", _zero("status", "disruptionsAllowed")),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        ("Value", _zero("value")),
        ("Global-Default", lambda obj: str(bool(obj.get("globalDefault"))).lower()),
        AGE,
        ("PreemptionPolicy", at("preemptionPolicy")),
    ),
    "storageclasses.storage.k8s.io": (
        NAME,
        ("Provisioner", at("provisioner")),
        ("ReclaimPolicy", at("reclaimPolicy")),
        ("VolumeBindingMode", at("volumeBindingMode")),
        ("AllowVolumeExpansion", lambda obj: str(bool(obj.get("allowVolumeExpansion"))).lower()),
        AGE,
    ),
    "leases.coordination.k8s.io": (NAME, ("Holder", at("spec", "holderIdentity", none="")), AGE),
    "csinodes.storage.k8s.io": (NAME, ("Drivers", lambda obj: len(obj.get("spec", {}).get("drivers", ()))), AGE),
    "csidrivers.storage.k8s.io": (
        NAME,
        ("AttachRequired", lambda obj: str(bool(obj.get("spec", {}).get("attachRequired", True))).lower()),
        ("PodInfoOnMount", lambda obj: str(bool(obj.get("spec", {}).get("podInfoOnMount"))).lower()),
        ("StorageCapacity", lambda obj: str(bool(obj.get("spec", {}).get("storageCapacity"))).lower()),
        (
            "TokenRequests",
            lambda obj: cells.joined(
                (one.get("audience", "") for one in obj.get("spec", {}).get("tokenRequests", ())), "<unset>"
            ),
        ),
        ("RequiresRepublish", lambda obj: str(bool(obj.get("spec", {}).get("requiresRepublish"))).lower()),
        ("Modes", lambda obj: cells.joined(obj.get("spec", {}).get("volumeLifecycleModes", ()))),
        AGE,
    ),
    "volumeattachments.storage.k8s.io": (
        NAME,
        ("Attacher", at("spec", "attacher")),
        ("PV", at("spec", "source", "persistentVolumeName")),
        ("Node", at("spec", "nodeName")),
        ("Attached", lambda obj: str(bool(obj.get("status", {}).get("attached"))).lower()),
        AGE,
    ),
    "resourceclaims.resource.k8s.io": (
        NAME,
        ("State", lambda obj: _claim_state(obj)),
        AGE,
    ),
    "resourceslices.resource.k8s.io": (
        NAME,
        ("Node", at("spec", "nodeName")),
        ("Driver", at("spec", "driver")),
        ("Pool", at("spec", "pool", "name")),
        AGE,
    ),
}
"""Columns by storage; others have name and age."""


def _claim_state(claim: Object) -> str:
    states = []
    if claim["metadata"].get("deletionTimestamp"):
        states.append("deleted")
    if claim.get("status", {}).get("allocation"):
        states.append("allocated")
        if claim["status"].get("reservedFor"):
            states.append("reserved")
    else:
        states.append("pending")
    return ",".join(states)


PLAIN: Columns = (NAME, AGE)

"""Rules of everything that is not a pod, each a few lines: defaults, what is wrong, what may not change."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import FORBIDDEN, INVALID, REQUIRED, is_qualified_name
from kubestow.apiserver.rules.podspec import default_pod_spec
from kubestow.apiserver.rules.podvalidation import wrong_node_selector, wrong_pod_spec
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.store import Store

_HIGHEST_USER_PRIORITY = 1_000_000_000


# Workloads


def _default_template(spec: dict[str, Any]) -> None:
    template = spec.get("template")
    if template is not None:
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))


def default_deployment(obj: dict[str, Any]) -> None:
    """One replica, rolled out a quarter at a time."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _default_template(spec)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def default_replicas(obj: dict[str, Any]) -> None:
    """One replica."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _default_template(spec)


def default_replication_controller(obj: dict[str, Any]) -> None:
    """One replica, selected by the labels of the template."""
    default_replicas(obj)
    labels = obj["spec"].get("template", {}).get("metadata", {}).get("labels")
    if labels:
        obj["spec"].setdefault("selector", dict(labels))


def default_daemon_set(obj: dict[str, Any]) -> None:
    """Rolled out one node at a time."""
    spec = obj.setdefault("spec", {})
    _default_template(spec)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def default_stateful_set(obj: dict[str, Any]) -> None:
    """One replica, in order."""
    default_replicas(obj)
    spec = obj["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _wrong_share(value: Any, path: str) -> Iterator[Cause]:
    """A number of pods, or a percentage of them."""
    if isinstance(value, str):
        if not value.removesuffix("%").isdecimal() or not value.endswith("%"):
            yield path, INVALID, f'Invalid value: "{value}": must be a number or a percentage such as 25%'
    elif value is not None and value < 0:
        yield path, INVALID, f"Invalid value: {value}: must be greater than or equal to 0"


def validate_deployment(obj: dict[str, Any]) -> Iterator[Cause]:
    """A sound workload that can be rolled out."""
    yield from validate_workload(obj)
    rolling = obj["spec"].get("strategy", {}).get("rollingUpdate", {})
    for name in ("maxSurge", "maxUnavailable"):
        yield from _wrong_share(rolling.get(name), f"spec.strategy.rollingUpdate.{name}")


def validate_workload(obj: dict[str, Any]) -> Iterator[Cause]:
    """A selector that selects the template's labels, and a sound template."""
    spec = obj["spec"]
    yield from _wrong_template(spec, "spec.template")
    replicas = spec.get("replicas", 0)
    if replicas < 0:
        yield "spec.replicas", INVALID, f"Invalid value: {replicas}: must be greater than or equal to 0"
    selector = spec.get("selector")
    if selector is None:
        yield "spec.selector", REQUIRED, "Required value"
        return
    plain = obj["kind"] == "ReplicationController"
    matcher = from_object({"matchLabels": selector} if plain else selector)
    labels = spec.get("template", {}).get("metadata", {}).get("labels") or {}
    if matcher is None or not matcher.conditions:
        yield "spec.selector", INVALID, "Invalid value: {}: empty selector is invalid"
    elif not matcher.matches(labels):
        yield "spec.template.metadata.labels", INVALID, "Invalid value: `selector` does not match template `labels`"
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "Always")
    if policy != "Always":
        message = f'Unsupported value: "{policy}": supported values: "Always"'
        yield "spec.template.spec.restartPolicy", "FieldValueNotSupported", message


def _wrong_template(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    template = spec.get("template")
    if template is None:
        yield path, REQUIRED, "Required value"
    else:
        yield from wrong_pod_spec(template.get("spec", {}), f"{path}.spec")


def keep_selector(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """The selector of a workload cannot change."""
    if new["spec"].get("selector") != old["spec"].get("selector"):
        yield "spec.selector", INVALID, "Invalid value: field is immutable"


def default_job(obj: dict[str, Any]) -> None:
    """One pod to completion, six failures at most; selected by the job's own identity."""
    spec = obj.setdefault("spec", {})
    _default_template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)


def admit_job(obj: dict[str, Any], store: Store) -> None:  # noqa: ARG001
    """Pods of a job carry its uid, and the job selects them by it."""
    spec = obj["spec"]
    template = spec.get("template")
    if spec.get("manualSelector") or template is None:
        return
    uid = obj["metadata"]["uid"]
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels.update(
        {
            "batch.kubernetes.io/controller-uid": uid,
            "controller-uid": uid,
            "batch.kubernetes.io/job-name": obj["metadata"]["name"],
            "job-name": obj["metadata"]["name"],
        }
    )
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def validate_job(obj: dict[str, Any]) -> Iterator[Cause]:
    """Counts that make sense and pods that end."""
    spec = obj["spec"]
    yield from _wrong_template(spec, "spec.template")
    for name in ("parallelism", "completions", "backoffLimit"):
        if spec.get(name, 0) < 0:
            yield f"spec.{name}", INVALID, f"Invalid value: {spec[name]}: must be greater than or equal to 0"
    if spec.get("completionMode") == "Indexed" and "completions" not in spec:
        yield "spec.completions", REQUIRED, "Required value: when completion mode is Indexed"
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "Always")
    if policy == "Always":
        yield "spec.template.spec.restartPolicy", REQUIRED, 'Required value: valid values: "OnFailure", "Never"'


def validate_job_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Selector and template of a job cannot change."""
    for name in ("selector", "template", "completionMode"):
        if new["spec"].get(name) != old["spec"].get(name):
            yield f"spec.{name}", INVALID, "Invalid value: field is immutable"


# Nodes, namespaces, services


def default_node(obj: dict[str, Any]) -> None:
    """A node may say nothing of itself."""
    obj.setdefault("spec", {})


def validate_node(obj: dict[str, Any]) -> Iterator[Cause]:
    """Taints that are unique by key and effect."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(obj.get("spec", {}).get("taints", ())):
        path = f"spec.taints[{index}]"
        if not is_qualified_name(taint.get("key", "")):
            yield f"{path}.key", INVALID, f'Invalid value: "{taint.get("key", "")}": not a qualified name'
        if not taint.get("effect"):
            yield f"{path}.effect", REQUIRED, "Required value"
        pair = (taint.get("key", ""), taint.get("effect", ""))
        if pair in seen:
            yield path, "FieldValueDuplicate", "Duplicate value: taints must be unique by key and effect pair"
        seen.add(pair)


def default_namespace(obj: dict[str, Any]) -> None:
    """Carries its own name as a label, and is active."""
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


def prepare_namespace(obj: dict[str, Any]) -> None:
    """A new namespace is active and is emptied before it goes."""
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def default_service(obj: dict[str, Any]) -> None:
    """An address inside the cluster; TCP; the target port is the port."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port", 0))
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("ipFamilies", ["IPv4"])


def admit_service(obj: dict[str, Any], store: Store) -> None:  # noqa: ARG001
    """Gives the service an address; nothing listens there."""
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        digest = hashlib.sha256(obj["metadata"]["uid"].encode()).digest()
        spec["clusterIP"] = f"10.96.{digest[0]}.{digest[1]}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


def prepare_service(obj: dict[str, Any]) -> None:
    """Nothing balances load here."""
    obj["status"] = {"loadBalancer": {}}


def keep_cluster_ip(new: dict[str, Any], old: dict[str, Any]) -> None:
    """An update without an address keeps the one there is."""
    for name in ("clusterIP", "clusterIPs"):
        if name in old["spec"] and not new["spec"].get(name):
            new["spec"][name] = old["spec"][name]


def default_secret(obj: dict[str, Any]) -> None:
    """stringData becomes data."""
    obj.setdefault("type", "Opaque")
    for key, value in obj.pop("stringData", {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()


# Policy, priority, storage


def default_budget(obj: dict[str, Any]) -> None:
    """Nothing."""
    obj.setdefault("spec", {})


def validate_budget(obj: dict[str, Any]) -> Iterator[Cause]:
    """One bound, not two."""
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield "spec", INVALID, "Invalid value: minAvailable and maxUnavailable cannot be both set"
    for name in ("minAvailable", "maxUnavailable"):
        yield from _wrong_share(spec.get(name), f"spec.{name}")


def default_priority_class(obj: dict[str, Any]) -> None:
    """Pods of a class may preempt unless it says otherwise."""
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def validate_priority_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Values above a billion are for the system."""
    name = obj["metadata"].get("name", "")
    if obj["value"] > _HIGHEST_USER_PRIORITY and not name.startswith("system-"):
        yield "value", FORBIDDEN, f"Forbidden: a user defined priority may be at most {_HIGHEST_USER_PRIORITY}"


def keep_priority(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Value and preemption policy of a class cannot change."""
    for name in ("value", "preemptionPolicy"):
        if new.get(name) != old.get(name):
            yield name, FORBIDDEN, "Forbidden: may not be changed in an update."


def default_storage_class(obj: dict[str, Any]) -> None:
    """Volumes go with their claims, and are bound at once."""
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def default_volume(obj: dict[str, Any]) -> None:
    """A volume is kept when its claim goes."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def prepare_volume(obj: dict[str, Any]) -> None:
    """A new volume waits to be looked at."""
    obj["status"] = {"phase": "Pending"}


def validate_volume(obj: dict[str, Any]) -> Iterator[Cause]:
    """A size, a way to mount it, and sound node conditions."""
    spec = obj["spec"]
    if not spec.get("capacity", {}).get("storage"):
        yield "spec.capacity", REQUIRED, "Required value"
    if not spec.get("accessModes"):
        yield "spec.accessModes", REQUIRED, "Required value"
    required = spec.get("nodeAffinity", {}).get("required")
    if required:
        yield from wrong_node_selector(required, "spec.nodeAffinity.required")


def default_claim(obj: dict[str, Any]) -> None:
    """A claim wants a file system."""
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def admit_claim(obj: dict[str, Any], store: Store) -> None:
    """A claim without a class gets the default one."""
    if "storageClassName" in obj["spec"]:
        return
    for record in store.collection("storageclasses.storage.k8s.io").objects.values():
        annotations = record.object()["metadata"].get("annotations", {})
        if annotations.get("storageclass.kubernetes.io/is-default-class") == "true":
            obj["spec"]["storageClassName"] = record.name
            return


def validate_claim(obj: dict[str, Any]) -> Iterator[Cause]:
    """A size and a way to mount it."""
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield "spec.accessModes", REQUIRED, "Required value: at least 1 access mode is required"
    if not spec.get("resources", {}).get("requests", {}).get("storage"):
        yield "spec.resources[storage]", REQUIRED, "Required value"

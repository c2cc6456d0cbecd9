"""Rules for workloads that run continuously: templates, selectors, roll-out strategies."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_enums, check_not_negative, forbidden, invalid, required, unsupported
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.names import check_labels
from kubestow.apiserver.rules.placement import check_label_selector
from kubestow.apiserver.rules.podspec import default_pod_spec
from kubestow.apiserver.rules.podvalidation import check_pod_spec
from kubestow.apiserver.rules.storage import check_claim, default_claim
from kubestow.apiserver.selectors import from_object

UNMATCHED = "`selector` does not match template `labels`"
_MUTABLE_FIELDS = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_RETENTION = ("Retain", "Delete")


def default_template(spec: dict[str, Any]) -> None:
    """Set the defaults of a pod template."""
    template = spec.get("template")
    if template is not None:
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))


def default_deployment(obj: dict[str, Any]) -> None:
    """Set the defaults of a Deployment: one replica, rolling updates of 25%."""
    default_replicas(obj)
    spec = obj["spec"]
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_missing(strategy, {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
    set_missing(spec, {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})


def default_replicas(obj: dict[str, Any]) -> None:
    """Set the defaults of a ReplicaSet: one replica."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    default_template(spec)


def default_replication_controller(obj: dict[str, Any]) -> None:
    """Set the defaults of a ReplicationController: one replica, with the template's labels as selector and labels."""
    default_replicas(obj)
    labels = _labels(obj["spec"])
    if labels:
        for place, key in ((obj["spec"], "selector"), (obj["metadata"], "labels")):
            place[key] = place.get(key) or dict(labels)


def default_daemon_set(obj: dict[str, Any]) -> None:
    """Set the defaults of a DaemonSet: rolling updates of one node at a time."""
    spec = obj.setdefault("spec", {})
    default_template(spec)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        set_missing(strategy, {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    spec.setdefault("revisionHistoryLimit", 10)


def default_stateful_set(obj: dict[str, Any]) -> None:
    """Set the defaults of a StatefulSet: one replica, ordered, with retained claims."""
    default_replicas(obj)
    spec = obj["spec"]
    set_missing(spec, {"serviceName": "", "podManagementPolicy": "OrderedReady"})
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    retained = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    set_missing(spec, {"persistentVolumeClaimRetentionPolicy": retained})
    for claim in spec.get("volumeClaimTemplates", ()):
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        default_claim(claim)
        claim.setdefault("status", {"phase": "Pending"})


def _check_int_or_percent(value: Any, path: str) -> Iterator[Cause]:
    """Check a number or percentage of pods."""
    if isinstance(value, str):
        if not value.removesuffix("%").isdecimal() or not value.endswith("%"):
            why = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            )
            yield invalid(path, value, why)
    elif value is not None and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def check_int_or_percent_up_to_100(value: Any, path: str) -> Iterator[Cause]:
    """Check a number or percentage of pods; the percentage is 100 at most."""
    yield from _check_int_or_percent(value, path)
    if isinstance(value, str) and value[:-1].isdecimal() and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _is_zero(value: Any) -> bool:
    return value in (0, "0%")


def _labels(spec: dict[str, Any]) -> dict[str, str] | None:
    labels: dict[str, str] | None = spec.get("template", {}).get("metadata", {}).get("labels")
    return labels


def validate_workload(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the counts, the selector and the template of a workload."""
    spec, kind = obj["spec"], obj["kind"]
    yield from check_not_negative(spec, "spec", "replicas", "minReadySeconds")
    selector, labels = spec.get("selector"), _labels(spec)
    causes = list(check_label_selector(selector, "spec.selector"))
    yield from causes
    if selector is None:
        yield required("spec.selector")
    elif not selector:
        # ReplicaSets have the message of Deployments.
        named = kind.lower() if kind in ("DaemonSet", "StatefulSet") else "deployment"
        yield invalid("spec.selector", {}, f"empty selector is invalid for {named}")
    if selector != {} and not causes:
        matcher = from_object(selector)
        if matcher is None or not matcher.matches(labels or {}):
            yield invalid("spec.template.metadata.labels", labels, UNMATCHED)
    yield from _check_running_template(spec, kind)


def validate_replication_controller(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the counts, the selector and the template of a ReplicationController."""
    spec = obj["spec"]
    yield from check_not_negative(spec, "spec", "replicas", "minReadySeconds")
    selector, labels = spec.get("selector"), _labels(spec) or {}
    if not selector:
        yield required("spec.selector")
    if "template" not in spec:
        yield required("spec.template")
        return
    if selector and not selector.items() <= labels.items():
        yield invalid("spec.template.metadata.labels", labels or None, UNMATCHED)
    yield from _check_running_template(spec, obj["kind"])


def _check_running_template(spec: dict[str, Any], kind: str) -> Iterator[Cause]:
    """Check the template of pods that run continuously."""
    yield from check_template(spec, "spec.template")
    pod = spec.get("template", {}).get("spec", {})
    policy = pod.get("restartPolicy", "Always")
    if policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if "activeDeadlineSeconds" in pod:
        named = "ReplicaSet" if kind == "Deployment" else kind
        why = f"activeDeadlineSeconds in {named} is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", why)


def validate_deployment(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check a Deployment and its strategy."""
    yield from validate_workload(obj)
    spec = obj["spec"]
    strategy = spec.get("strategy", {})
    rolling, path = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if strategy.get("type") == "Recreate" and rolling is not None:
        yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif rolling is not None:
        yield from check_int_or_percent_up_to_100(rolling.get("maxUnavailable"), f"{path}.maxUnavailable")
        yield from _check_int_or_percent(rolling.get("maxSurge"), f"{path}.maxSurge")
        if _is_zero(rolling.get("maxUnavailable")) and _is_zero(rolling.get("maxSurge")):
            yield invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
    yield from check_not_negative(spec, "spec", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec["progressDeadlineSeconds"]
    if deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def validate_daemon_set(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check a DaemonSet: its updates have either unavailable or surplus pods."""
    yield from validate_workload(obj)
    yield from check_not_negative(obj["spec"], "spec", "revisionHistoryLimit")
    rolling, path = obj["spec"]["updateStrategy"].get("rollingUpdate", {}), "spec.updateStrategy.rollingUpdate"
    yield from check_int_or_percent_up_to_100(rolling.get("maxUnavailable"), f"{path}.maxUnavailable")
    yield from check_int_or_percent_up_to_100(rolling.get("maxSurge"), f"{path}.maxSurge")
    if rolling and not _is_zero(rolling["maxUnavailable"]) and not _is_zero(rolling["maxSurge"]):
        yield invalid(f"{path}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
    elif rolling and _is_zero(rolling["maxUnavailable"]) and _is_zero(rolling["maxSurge"]):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def validate_stateful_set(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check a StatefulSet: policies, update strategy and claim templates."""
    spec = obj["spec"]
    yield from validate_workload(obj)
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy, path = spec["updateStrategy"], "spec.updateStrategy.rollingUpdate"
    rolling = strategy.get("rollingUpdate", {})
    if strategy["type"] == "OnDelete" and rolling:
        yield invalid(path, rolling, "only allowed for updateStrategy 'RollingUpdate'")
    yield from check_not_negative(rolling, path, "partition")
    yield from check_int_or_percent_up_to_100(rolling.get("maxUnavailable"), f"{path}.maxUnavailable")
    retention = dict.fromkeys(("whenDeleted", "whenScaled"), _RETENTION)
    yield from check_enums(
        spec["persistentVolumeClaimRetentionPolicy"], "spec.persistentVolumeClaimRetentionPolicy", retention
    )
    yield from check_not_negative(spec.get("ordinals", {}), "spec.ordinals", "start")
    for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
        yield from check_claim(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")


def check_template(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the pod template of a workload."""
    template = spec.get("template", {})
    yield from check_labels(template.get("metadata", {}).get("labels") or {}, f"{path}.labels")
    yield from check_pod_spec(template.get("spec", {}), f"{path}.spec")
    if template.get("spec", {}).get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def validate_stateful_set_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that only the mutable fields have changed."""
    before, after = ({k: v for k, v in obj["spec"].items() if k not in _MUTABLE_FIELDS} for obj in (old, new))
    if after != before:
        listed = ", ".join(f"'{name}'" for name in _MUTABLE_FIELDS[:-1])
        why = f"updates to statefulset spec for fields other than {listed} and '{_MUTABLE_FIELDS[-1]}' are forbidden"
        yield forbidden("spec", why)

"""Workloads: defaults of their templates, selectors that select, what a roll-out or a job needs."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import INVALID, REQUIRED
from kubestow.apiserver.rules.podspec import default_pod_spec
from kubestow.apiserver.rules.podvalidation import wrong_pod_spec
from kubestow.apiserver.rules.storage import default_claim
from kubestow.apiserver.selectors import from_object


def _default_template(spec: dict[str, Any]) -> None:
    template = spec.get("template")
    if template is not None:
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))


def default_pod_template(obj: dict[str, Any]) -> None:
    """The defaults of a pod."""
    _default_template(obj)


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
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        default_claim(claim)
        claim.setdefault("status", {"phase": "Pending"})


def wrong_share(value: Any, path: str) -> Iterator[Cause]:
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
        yield from wrong_share(rolling.get(name), f"spec.strategy.rollingUpdate.{name}")


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
    if not spec.get("podReplacementPolicy"):
        spec["podReplacementPolicy"] = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"


def default_cron_job(obj: dict[str, Any]) -> None:
    """Jobs may overlap; three that succeeded and one that failed are kept."""
    spec = obj.setdefault("spec", {})
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.get("jobTemplate")
    if template is not None:
        template.setdefault("metadata", {})
        _default_template(template.setdefault("spec", {}))


def validate_cron_job(obj: dict[str, Any]) -> Iterator[Cause]:
    """A schedule of five parts, and jobs that end."""
    schedule = obj["spec"].get("schedule", "")
    if len(schedule.split()) != 5 and not schedule.startswith("@"):
        message = f'Invalid value: "{schedule}": must have five parts, such as */5 * * * *, or be a word such as @daily'
        yield "spec.schedule", INVALID, message
    template = obj["spec"].get("jobTemplate", {})
    yield from _wrong_job_spec(template.get("spec", {}), "spec.jobTemplate.spec")


def select_own_pods(obj: dict[str, Any]) -> None:
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
    if not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def validate_job(obj: dict[str, Any]) -> Iterator[Cause]:
    """Counts that make sense and pods that end."""
    yield from _wrong_job_spec(obj["spec"], "spec")


def _wrong_job_spec(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from _wrong_template(spec, f"{path}.template")
    for name in ("parallelism", "completions", "backoffLimit"):
        if spec.get(name, 0) < 0:
            yield f"{path}.{name}", INVALID, f"Invalid value: {spec[name]}: must be greater than or equal to 0"
    if spec.get("completionMode") == "Indexed" and "completions" not in spec:
        yield f"{path}.completions", REQUIRED, "Required value: when completion mode is Indexed"
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "Always")
    if policy == "Always":
        yield f"{path}.template.spec.restartPolicy", REQUIRED, 'Required value: valid values: "OnFailure", "Never"'


def validate_job_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Selector and template of a job cannot change; but while it is suspended, where its pods go and what they need."""
    if new["spec"].get("completionMode") != "Indexed" and new["spec"].get("completions") != old["spec"].get(
        "completions"
    ):
        yield "spec.completions", INVALID, "Invalid value: field is immutable"
    status = old.get("status", {})
    suspended = any(
        one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions", ())
    )
    rests = not status.get("active") and ("startTime" not in status or suspended)
    free = bool(old["spec"].get("suspend")) and rests
    for name in ("selector", "podFailurePolicy", "completionMode", "managedBy"):
        if new["spec"].get(name) != old["spec"].get(name):
            yield f"spec.{name}", INVALID, "Invalid value: field is immutable"
    before, after = old["spec"].get("template", {}), new["spec"].get("template", {})
    if (_fixed(after) != _fixed(before)) if free else after != before:
        yield "spec.template", INVALID, "Invalid value: field is immutable"


def _fixed(template: dict[str, Any]) -> dict[str, Any]:
    """The part of a suspended job's template that cannot change."""
    directives = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    spec = {key: value for key, value in template.get("spec", {}).items() if key not in directives}
    others = {k: v for k, v in template.get("spec", {}).get("affinity", {}).items() if k != "nodeAffinity"}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{k: v for k, v in one.items() if k != "resources"} for one in spec[kind]]
    return {**spec, "affinity": others}

"""What is asked of new pod groups besides being well formed, and what they get."""

from typing import Any

from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that keeps a group until none of its pods runs any more."""
_WORKLOADS = "workloads.scheduling.k8s.io"


def protect(group: Object, _: Store) -> None:
    """A group stays until its pods are done."""
    finalizers = group["metadata"].get("finalizers") or []
    if PROTECTION not in finalizers:
        group["metadata"]["finalizers"] = [*finalizers, PROTECTION]


def check_template(group: Object, store: Store) -> str | None:
    """The template that a group says it was made from must be there."""
    reference = (group["spec"].get("podGroupTemplateRef") or {}).get("workload") or {}
    name, template = reference.get("workloadName"), reference.get("podGroupTemplateName")
    if not name or not template:
        # Whether they may be missing is for validation to say.
        return None
    record = store.get(_WORKLOADS, group["metadata"]["namespace"], name)
    if record is None:
        return f'PodGroup rejected: Workload "{name}" not found'
    workload = record.object()
    if "deletionTimestamp" in workload["metadata"]:
        return f'PodGroup rejected: Workload "{name}" is being deleted'
    if not any(one["name"] == template for one in workload["spec"]["podGroupTemplates"]):
        return f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"'
    return None

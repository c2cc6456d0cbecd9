"""Admission of pod groups: their finalizer and template reference, and the parallelism of Jobs that have one."""

from typing import Any

from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that keeps a group until none of its pods is running."""
_WORKLOADS = "workloads.scheduling.k8s.io"
_GROUPS = "podgroups.scheduling.k8s.io"
_JOBS = "jobs.batch"


def protect(group: Object, _: Store) -> None:
    """Add the finalizer that keeps a group until its pods have finished."""
    finalizers = group["metadata"].get("finalizers") or []
    if PROTECTION not in finalizers:
        group["metadata"]["finalizers"] = [*finalizers, PROTECTION]


def check_template(group: Object, store: Store) -> str | None:
    """Deny a group whose template does not exist."""
    reference = (group["spec"].get("podGroupTemplateRef") or {}).get("workload") or {}
    name, template = reference.get("workloadName"), reference.get("podGroupTemplateName")
    if not name or not template:
        # Validation decides whether they may be missing.
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


def check_parallelism(job: Object, store: Store) -> str | None:
    """Deny a change of the parallelism of a Job that runs as a gang."""
    metadata = job["metadata"]
    record = store.get(_JOBS, metadata["namespace"], metadata["name"])
    if record is None:
        return None
    old = record.object()
    if job["spec"].get("parallelism") == old["spec"].get("parallelism"):
        return None
    gang = next((group for group in _groups_of(old, store) if group["spec"]["schedulingPolicy"].get("gang")), None)
    if gang is None:
        return None
    name = gang["metadata"]["name"]
    return f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{name}"'


def _groups_of(job: Object, store: Store) -> list[Object]:
    """Return the group that a Job's pods name, or those that the Job owns."""
    namespace, uid = job["metadata"]["namespace"], job["metadata"]["uid"]
    named = job["spec"]["template"].get("spec", {}).get("schedulingGroup", {}).get("podGroupName")
    if named:
        record = store.get(_GROUPS, namespace, named)
        return [] if record is None else [record.object()]
    owned = [name for kind, _, name in store.dependents.get(uid, ()) if kind == _GROUPS]
    found = (store.get(_GROUPS, namespace, name) for name in owned)
    return [record.object() for record in found if record is not None]

"""The Workload and the PodGroup of a Job.

A Job without a controller gets both, and its pods join the group. `spec.scheduling` of the Job defines how they are
scheduled; by default, one by one. A Job whose controller has a Workload for it, and names a template of it in an
annotation, gets only the group. Only objects that the Job controls are used, and none are created for a Job that
started before the feature was enabled.
"""

from typing import Any

from kubestow.apiserver.controllers.api import Api, Object, condition_of, reference
from kubestow.apiserver.controllers.job_state import JobState
from kubestow.apiserver.store.records import Record

_WORKLOADS = "workloads.scheduling.k8s.io"
_GROUPS = "podgroups.scheduling.k8s.io"
_COMPONENT = "job-controller"
_TEMPLATE = "scheduling.k8s.io/group-template-name"
_COPIED = (
    "schedulingPolicy", "schedulingConstraints", "disruptionMode", "resourceClaims", "priorityClassName", "priority",
)  # fmt: skip
"""The fields that a group has from its template."""
_LONGEST_NAME = 253
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def group_of(api: Api, state: JobState) -> Object | None:
    """Return the group of a Job's pods, created if missing; None if the pods have no group of the Job."""
    job = state.job
    if "schedulingGroup" in state.spec["template"].get("spec", {}):
        return None
    controller = next((one for one in job["metadata"].get("ownerReferences", ()) if one.get("controller")), None)
    name = job["metadata"].get("annotations", {}).get(_TEMPLATE)
    if controller is None:
        workload = _workload(api, state)
        templates = [] if workload is None else workload["spec"].get("podGroupTemplates", [])
    elif name is not None:
        workload = next(iter(_made_for(api, job, controller)), None)
        every = [] if workload is None else workload["spec"].get("podGroupTemplates", [])
        templates = [one for one in every if one["name"] == name]
    else:
        return None
    if workload is None or len(templates) != 1:
        return None
    named = {"workloadName": workload["metadata"]["name"]}.items()
    controlled = [one for one in _all(api, _GROUPS, job) if _is_controlled(one, job)]
    groups = [one for one in controlled if named <= (one["spec"].get("workloadRef") or {}).items()]
    if len(groups) > 1 or (not groups and not _is_new(state)):
        return None
    if not groups:
        return _create_group(api, job, workload, templates[0], owned=controller is None).object()
    return _resized(api, _GROUPS, groups[0], groups[0]["spec"], templates[0]["schedulingPolicy"])


def join(pod: Object, group: Object) -> None:
    """Add a pod to a group."""
    pod["spec"]["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}
    pod["metadata"]["ownerReferences"].append(_plain_reference(group))


def _workload(api: Api, state: JobState) -> Object | None:
    """Return the Workload of a Job without a controller, created if missing; with the current size of the gang."""
    job = state.job
    metadata = job["metadata"]
    found = [one for one in _made_for(api, job, reference(job)) if _is_controlled(one, job)]
    if len(found) > 1 or (not found and not _is_new(state)):
        return None
    template = _template(state)
    if found:
        templates = found[0]["spec"].get("podGroupTemplates", [])
        if len(templates) != 1:
            return None
        return _resized(api, _WORKLOADS, found[0], templates[0], template["schedulingPolicy"])
    suffix = _hashed(metadata["uid"])
    name = f"{metadata['name'][: _LONGEST_NAME - len(suffix) - 1]}-{suffix}"
    workload: Object = {
        "metadata": {"name": name, "ownerReferences": [reference(job)]},
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": metadata["name"]},
            "podGroupTemplates": [template],
        },
    }
    record = api.create(_WORKLOADS, metadata["namespace"], workload)
    api.event(_COMPONENT, job, "WorkloadCreated", f"Created Workload {record.name} for Job {metadata['name']}")
    return record.object()


def _template(state: JobState) -> Object:
    """Return the template of a Job's group."""
    template: Object = {"name": f"{state.job['metadata']['name']}-pgt-0", "schedulingPolicy": {"basic": {}}}
    template |= state.spec.get("scheduling", {})
    policy = template["schedulingPolicy"]
    if "gang" in policy:
        size = policy["gang"].get("minCount", max(1, state.spec.get("parallelism", 1)))
        template["schedulingPolicy"] = {"gang": {"minCount": size}}
    name = state.spec["template"].get("spec", {}).get("priorityClassName")
    return template | ({"priorityClassName": name} if name else {})


def _resized(api: Api, storage: str, obj: Object, part: Object, policy: Object) -> Object:
    """Return a group or a workload in which the gang of a part has the size of a policy."""
    gang, wanted = part["schedulingPolicy"].get("gang"), policy.get("gang")
    if gang is None or wanted is None or gang["minCount"] == wanted["minCount"]:
        return obj
    metadata = obj["metadata"]

    def resize(current: Object) -> None:
        holder: Any = current["spec"]
        holder = holder["podGroupTemplates"][0] if storage == _WORKLOADS else holder
        holder["schedulingPolicy"]["gang"]["minCount"] = wanted["minCount"]

    return api.update(storage, metadata["namespace"], metadata["name"], resize).object()


def _create_group(api: Api, job: Object, workload: Object, template: Object, *, owned: bool) -> Record:
    """Create the group of a template. `owned`: the workload, too, is deleted with the Job."""
    name = workload["metadata"]["name"]
    group: Object = {
        "metadata": {
            "name": _group_name(name, template["name"]),
            "ownerReferences": [reference(job), *([_plain_reference(workload)] if owned else ())],
        },
        "spec": {
            "workloadRef": {"workloadName": name, "templateName": template["name"]},
            **{key: template[key] for key in _COPIED if key in template},
        },
    }
    record = api.create(_GROUPS, job["metadata"]["namespace"], group)
    api.event(_COMPONENT, job, "PodGroupCreated", f"Created PodGroup {record.name} for Job {job['metadata']['name']}")
    return record


def _is_new(state: JobState) -> bool:
    """Return whether the Job has not started yet."""
    status = state.job.get("status", {})
    started = any(status.get(name) for name in ("startTime", "succeeded", "failed"))
    return not started and not state.pods and condition_of(state.job, "Suspended") is None


def _all(api: Api, storage: str, job: Object) -> list[Object]:
    namespace = api.store.collection(storage).by_namespace.get(job["metadata"]["namespace"], {})
    return [record.object() for record in namespace.values()]


def _made_for(api: Api, job: Object, controller: Object) -> list[Object]:
    """Return the workloads that name a controller of the namespace."""
    wanted = {
        "apiGroup": controller["apiVersion"].rpartition("/")[0],
        "kind": controller["kind"],
        "name": controller["name"],
    }
    every = _all(api, _WORKLOADS, job)
    return [one for one in every if {"apiGroup": ""} | (one["spec"].get("controllerRef") or {}) == wanted]


def _is_controlled(obj: Object, job: Object) -> bool:
    owners = obj["metadata"].get("ownerReferences", ())
    return any(one.get("controller") and one["uid"] == job["metadata"]["uid"] for one in owners)


def _plain_reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def _group_name(workload: str, template: str) -> str:
    suffix = _hashed(workload + template)
    limit = _LONGEST_NAME - len(suffix) - 2
    if len(workload) + len(template) > limit:
        # Only a name longer than half of the limit is shortened.
        half = limit // 2
        if len(workload) <= half:
            template = template[: limit - len(workload)]
        elif len(template) <= half:
            workload = workload[: limit - len(template)]
        else:
            workload, template = workload[: limit - half], template[:half]
    return f"{workload}-{template}-{suffix}"


def _hashed(text: str) -> str:
    """Return the FNV-1a hash of a text, in letters without vowels, which form no words."""
    number = 0x811C9DC5
    for byte in text.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))

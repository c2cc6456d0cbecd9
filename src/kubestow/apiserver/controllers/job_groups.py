"""Gang scheduling of Jobs: an indexed Job that runs all its pods at the same time gets a Workload and a PodGroup.

Only objects that the Job controls are used. If a user created a Workload or a group for the Job, or the Job started
before the feature was enabled, its pods are scheduled one by one.
"""

from kubestow.apiserver.controllers.api import Api, Object, condition_of, reference
from kubestow.apiserver.controllers.job_state import JobState
from kubestow.apiserver.store.records import Record

_WORKLOADS = "workloads.scheduling.k8s.io"
_GROUPS = "podgroups.scheduling.k8s.io"
_COMPONENT = "job-controller"
_LONGEST_NAME = 253
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def group_of(api: Api, state: JobState) -> Object | None:
    """Return the group of a Job's pods, created if missing; None if the pods are scheduled one by one."""
    job, spec = state.job, state.spec
    parallelism = spec.get("parallelism", 1)
    is_gang = parallelism > 1 and spec.get("completions") == parallelism and state.indexed
    if not is_gang or "schedulingGroup" in spec["template"].get("spec", {}):
        return None
    workload = _workload(api, state)
    if workload is None or len(workload["spec"]["podGroupTemplates"]) != 1:
        return None
    found = [one for one in _all(api, _GROUPS, job) if _workload_name(one) == workload["metadata"]["name"]]
    if not found:
        return _create_group(api, job, workload).object()
    return found[0] if len(found) == 1 and _is_controlled(found[0], job) else None


def join(pod: Object, group: Object) -> None:
    """Add a pod to a group."""
    pod["spec"]["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}
    pod["metadata"]["ownerReferences"].append(_plain_reference(group))


def _workload(api: Api, state: JobState) -> Object | None:
    job = state.job
    name = job["metadata"]["name"]
    found = [one for one in _all(api, _WORKLOADS, job) if _job_name(one) == name]
    if found:
        return found[0] if len(found) == 1 and _is_controlled(found[0], job) else None
    if not _is_new(state):
        return None
    workload: Object = {
        "metadata": {"name": _workload_name_for(job), "ownerReferences": [reference(job)]},
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name},
            "podGroupTemplates": [
                {"name": f"{name}-pgt-0", "schedulingPolicy": {"gang": {"minCount": state.spec["parallelism"]}}}
            ],
        },
    }
    record = api.create(_WORKLOADS, job["metadata"]["namespace"], workload)
    api.event(_COMPONENT, job, "WorkloadCreated", f"Created Workload {record.name} for Job {name}")
    return record.object()


def _create_group(api: Api, job: Object, workload: Object) -> Record:
    template = workload["spec"]["podGroupTemplates"][0]
    name = workload["metadata"]["name"]
    of = {"workloadName": name, "podGroupTemplateName": template["name"]}
    group: Object = {
        "metadata": {
            "name": _group_name(name, template["name"]),
            "ownerReferences": [reference(job), _plain_reference(workload)],
        },
        "spec": {"podGroupTemplateRef": {"workload": of}, "schedulingPolicy": template["schedulingPolicy"]},
    }
    return api.create(_GROUPS, job["metadata"]["namespace"], group)


def _is_new(state: JobState) -> bool:
    """Return whether the Job has not started yet."""
    status = state.job.get("status", {})
    started = any(status.get(name) for name in ("startTime", "succeeded", "failed"))
    return not started and not state.pods and condition_of(state.job, "Suspended") is None


def _all(api: Api, storage: str, job: Object) -> list[Object]:
    namespace = api.store.collection(storage).by_namespace.get(job["metadata"]["namespace"], {})
    return [record.object() for record in namespace.values()]


def _job_name(workload: Object) -> str:
    controller = workload["spec"].get("controllerRef") or {}
    is_job = (controller.get("apiGroup"), controller.get("kind")) == ("batch", "Job")
    return str(controller.get("name", "")) if is_job else ""


def _workload_name(group: Object) -> str:
    of = (group["spec"].get("podGroupTemplateRef") or {}).get("workload") or {}
    return str(of.get("workloadName", ""))


def _is_controlled(obj: Object, job: Object) -> bool:
    owners = obj["metadata"].get("ownerReferences", ())
    return any(one.get("controller") and one["uid"] == job["metadata"]["uid"] for one in owners)


def _plain_reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def _workload_name_for(job: Object) -> str:
    suffix = _hashed(job["metadata"]["uid"])
    return f"{job['metadata']['name'][: _LONGEST_NAME - len(suffix) - 1]}-{suffix}"


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

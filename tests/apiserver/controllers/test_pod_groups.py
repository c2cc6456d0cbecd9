"""Protection of pod groups in use, and the groups that Jobs create."""

from typing import Any

import pytest

from kubestow.apiserver.errors import ApiError
from support.apiserver.world import World, template

GROUPS = "podgroups.scheduling.k8s.io"
WORKLOADS = "workloads.scheduling.k8s.io"
JOBS = "jobs.batch"
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
GATES = "GenericWorkload=true,WorkloadWithJob=true"

pytestmark = pytest.mark.world(gates=GATES)


def job(**spec: Any) -> dict[str, Any]:
    """Return an indexed Job that runs three pods at the same time by default."""
    together = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}
    return {"template": template("i", restartPolicy="Never"), **together, **spec}


def member(world: World, name: str, **spec: Any) -> None:
    containers = [{"name": "c", "image": "i"}]
    group = {"podGroupName": "g"}
    world.create("pods", name, {"containers": containers, "schedulingGroup": group, "restartPolicy": "Never", **spec})


def test_a_group_in_use_is_not_removed(world: World) -> None:
    """Until its last pod has ended or is deleted."""
    world.create(GROUPS, "g", GANG)
    member(world, "a")
    member(world, "b")
    world.delete(GROUPS, "g")
    world.run(1.0)
    assert "deletionTimestamp" in world.get(GROUPS, "g")["metadata"]
    world.delete("pods", "a")
    world.run(3.0)
    assert world.find(GROUPS, "g") is not None
    world.until(lambda: world.find(GROUPS, "g") is None)
    assert world.get("pods", "b")["status"]["phase"] == "Succeeded"


def test_an_unused_group_is_removed(world: World) -> None:
    """Immediately."""
    world.create(GROUPS, "g", GANG)
    world.delete(GROUPS, "g")
    world.run(1.0)
    assert world.find(GROUPS, "g") is None


def test_without_the_gate_nothing_is_protected() -> None:
    """GenericWorkload is disabled."""
    world = World()
    world.create(GROUPS, "g", GANG)
    member(world, "a")
    world.delete(GROUPS, "g")
    assert world.find(GROUPS, "g") is None


def test_a_job_that_runs_all_at_once_gets_a_group(world: World) -> None:
    """With a Workload; the Job owns both, and they are deleted with it."""
    made = world.create(JOBS, "train", job())
    world.run(2.0)
    (workload,), (group,) = world.all(WORKLOADS), world.all(GROUPS)
    uid = made["metadata"]["uid"]
    assert workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "train"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    reference = group["spec"]["podGroupTemplateRef"]["workload"]
    assert reference == {"workloadName": workload["metadata"]["name"], "podGroupTemplateName": "train-pgt-0"}
    assert group["metadata"]["name"].startswith(f"{workload['metadata']['name']}-train-pgt-0-")
    assert [owner["uid"] for owner in group["metadata"]["ownerReferences"]] == [uid, workload["metadata"]["uid"]]
    pods = world.pods()
    assert len(pods) == 3
    for pod in pods:
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        assert pod["metadata"]["ownerReferences"][1]["uid"] == group["metadata"]["uid"]
    assert ("WorkloadCreated", f"Created Workload {workload['metadata']['name']} for Job train") in world.events("Job")
    world.delete(JOBS, "train")
    world.until(lambda: not world.all(GROUPS) and not world.all(WORKLOADS) and not world.all("pods"))


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": 1, "completions": 1},
        {"completions": 6},
        {"completionMode": "NonIndexed"},
        {"template": template("i", restartPolicy="Never", schedulingGroup={"podGroupName": "own"})},
    ],
    ids=["a single pod", "one after the other", "without indexes", "a group of its own"],
)
def test_other_jobs_get_no_group(world: World, spec: dict[str, Any]) -> None:
    """Their pods do not run at the same time, or are in a group already."""
    world.create(JOBS, "j", job(**spec))
    world.run(2.0)
    assert not world.all(WORKLOADS)
    assert not world.all(GROUPS)
    assert world.pods()


def test_jobs_get_no_group_without_the_gate() -> None:
    """WorkloadWithJob is disabled by default."""
    world = World()
    world.create(JOBS, "j", job())
    world.run(2.0)
    assert not world.all(GROUPS)
    assert all("schedulingGroup" not in pod["spec"] for pod in world.pods())


def test_a_workload_of_a_user_is_not_used(world: World) -> None:
    """The Job's pods are scheduled one by one."""
    reference = {"apiGroup": "batch", "kind": "Job", "name": "j"}
    templates = [{"name": "t", **GANG}]
    world.create(WORKLOADS, "w", {"controllerRef": reference, "podGroupTemplates": templates})
    world.create(JOBS, "j", job())
    world.run(2.0)
    assert not world.all(GROUPS)
    assert all("schedulingGroup" not in pod["spec"] for pod in world.pods())


def test_pods_that_are_replaced_join_the_same_group(world: World) -> None:
    """A Job creates one group, regardless of failures."""
    world.create(JOBS, "j", job())
    world.run(3.0)
    first = {pod["metadata"]["name"] for pod in world.pods()}
    world.delete("pods", min(first))
    world.until(lambda: {pod["metadata"]["name"] for pod in world.pods()} - first)
    assert len(world.all(GROUPS)) == 1
    assert len({pod["spec"]["schedulingGroup"]["podGroupName"] for pod in world.pods()}) == 1


@pytest.mark.parametrize("named", [False, True], ids=["made by the Job", "named by its pods"])
def test_a_gang_keeps_its_size(world: World, named: bool) -> None:
    """The parallelism of such a Job is immutable; that of others is not."""
    group = {"schedulingGroup": {"podGroupName": "g"}} if named else {}
    world.create(GROUPS, "g", GANG)
    world.create(JOBS, "j", job(template=template("i", restartPolicy="Never", **group)))
    world.create(JOBS, "other", job(completionMode="NonIndexed"))
    world.run(1.0)
    with pytest.raises(ApiError, match="cannot change parallelism for a Job referencing gang-scheduled PodGroup"):
        world.set(JOBS, "j", parallelism=2)
    world.set(JOBS, "j", suspend=True)
    world.set(JOBS, "other", parallelism=2)

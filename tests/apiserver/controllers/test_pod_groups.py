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
    """Return a Job that runs three pods as a gang by default."""
    gang: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
    return {
        "template": template("i", restartPolicy="Never"),
        "parallelism": 3,
        "completions": 3,
        "scheduling": gang,
        **spec,
    }


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


def test_a_job_gets_a_workload_and_a_group(world: World) -> None:
    """The Job owns both, and they are deleted with it."""
    made = world.create(JOBS, "train", job())
    world.run(2.0)
    (workload,), (group,) = world.all(WORKLOADS), world.all(GROUPS)
    uid = made["metadata"]["uid"]
    assert workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "train"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    name = workload["metadata"]["name"]
    assert group["spec"]["workloadRef"] == {"workloadName": name, "templateName": "train-pgt-0"}
    assert group["metadata"]["name"].startswith(f"{name}-train-pgt-0-")
    assert [owner["uid"] for owner in group["metadata"]["ownerReferences"]] == [uid, workload["metadata"]["uid"]]
    pods = world.pods()
    assert len(pods) == 3
    for pod in pods:
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        assert pod["metadata"]["ownerReferences"][1]["uid"] == group["metadata"]["uid"]
    assert {
        ("WorkloadCreated", f"Created Workload {name} for Job train"),
        ("PodGroupCreated", f"Created PodGroup {group['metadata']['name']} for Job train"),
    } <= set(world.events("Job"))
    world.delete(JOBS, "train")
    world.until(lambda: not world.all(GROUPS) and not world.all(WORKLOADS) and not world.all("pods"))


def test_a_job_defines_how_its_group_is_scheduled(world: World) -> None:
    """By default its pods are scheduled one by one, with the priority class of the pods."""
    world.create("priorityclasses.scheduling.k8s.io", "high", value=5)
    pods = template("i", restartPolicy="Never", priorityClassName="high")
    world.create(JOBS, "plain", {"template": pods})
    topology = {"topology": [{"key": "rack"}]}
    shape = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}}
    world.create(JOBS, "shaped", job(scheduling={**shape, "schedulingConstraints": topology}))
    world.run(2.0)
    plain, shaped = sorted((group["spec"] for group in world.all(GROUPS)), key=lambda spec: spec["priority"])[::-1]
    assert (plain["schedulingPolicy"], plain["priorityClassName"], plain["priority"]) == ({"basic": {}}, "high", 5)
    assert {key: shaped[key] for key in shape} == shape
    assert shaped["schedulingConstraints"] == topology


def test_a_job_that_names_a_group_gets_none(world: World) -> None:
    """Its pods are in that group."""
    pods = template("i", restartPolicy="Never", schedulingGroup={"podGroupName": "own"})
    world.create(JOBS, "j", job(template=pods))
    world.run(2.0)
    assert not world.all(WORKLOADS)
    assert not world.all(GROUPS)
    assert world.pods()


def test_a_job_of_a_controller_gets_the_group_that_its_controller_planned(world: World) -> None:
    """The annotation names a template of the controller's workload; without it, the Job gets no group."""
    config = world.create("configmaps", "set", None)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "set", "uid": config["metadata"]["uid"]}
    templates = [
        {"name": "a", "schedulingPolicy": {"basic": {}}},
        {"name": "b", "schedulingPolicy": {"gang": {"minCount": 2}}},
    ]
    reference = {"kind": "ConfigMap", "name": "set"}
    world.create(WORKLOADS, "w", {"controllerRef": reference, "podGroupTemplates": templates})
    owned = {"ownerReferences": [{**owner, "controller": True}]}
    chosen = {"annotations": {"scheduling.k8s.io/group-template-name": "b"}}
    world.create(JOBS, "without", job(), metadata=owned)
    world.create(JOBS, "with", job(parallelism=2), metadata={**owned, **chosen})
    world.run(2.0)
    (group,) = world.all(GROUPS)
    assert group["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "b"}
    assert [one["name"] for one in group["metadata"]["ownerReferences"]] == ["with"]
    in_groups = [pod["metadata"]["name"] for pod in world.pods() if "schedulingGroup" in pod["spec"]]
    assert len(in_groups) == 2


def test_jobs_get_no_group_without_the_gate() -> None:
    """WorkloadWithJob is disabled by default; the field is dropped."""
    world = World()
    world.create(JOBS, "j", job())
    world.run(2.0)
    assert "scheduling" not in world.get(JOBS, "j")["spec"]
    assert not world.all(GROUPS)
    assert all("schedulingGroup" not in pod["spec"] for pod in world.pods())


def test_a_workload_of_a_user_is_not_used(world: World) -> None:
    """The Job gets its own."""
    reference = {"apiGroup": "batch", "kind": "Job", "name": "j"}
    templates = [{"name": "t", **GANG}]
    world.create(WORKLOADS, "w", {"controllerRef": reference, "podGroupTemplates": templates})
    world.create(JOBS, "j", job())
    world.run(2.0)
    (group,) = world.all(GROUPS)
    assert group["spec"]["workloadRef"]["workloadName"] != "w"


def test_pods_that_are_replaced_join_the_same_group(world: World) -> None:
    """A Job creates one group, regardless of failures."""
    world.create(JOBS, "j", job())
    world.run(3.0)
    first = {pod["metadata"]["name"] for pod in world.pods()}
    world.delete("pods", min(first))
    world.until(lambda: {pod["metadata"]["name"] for pod in world.pods()} - first)
    assert len(world.all(GROUPS)) == 1
    assert len({pod["spec"]["schedulingGroup"]["podGroupName"] for pod in world.pods()}) == 1


def test_the_gang_of_a_job_can_be_resized(world: World) -> None:
    """The workload and the group follow; without a size of its own, the gang has that of the Job."""
    world.create(JOBS, "j", job())
    world.run(1.0)
    world.set(JOBS, "j", parallelism=4)
    world.run(1.0)
    sized = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    world.create(JOBS, "sized", job(scheduling=sized))
    world.run(1.0)
    world.set(JOBS, "sized", scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}})
    world.run(1.0)
    assert sorted(group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in world.all(GROUPS)) == [3, 4]
    templates = [workload["spec"]["podGroupTemplates"][0] for workload in world.all(WORKLOADS)]
    assert sorted(one["schedulingPolicy"]["gang"]["minCount"] for one in templates) == [3, 4]


@pytest.mark.parametrize(
    ("scheduling", "message"),
    [
        ({"schedulingPolicy": {"gang": {"minCount": 4}}}, "must not be greater than parallelism \\(3\\)"),
        ({"schedulingPolicy": {}}, "must specify one of: `basic`, `gang`"),
        ({"disruptionMode": {"all": {}}}, "the disruptionMode `all` is not supported with the Basic scheduling policy"),
    ],
)
def test_invalid_scheduling_of_a_job_is_rejected(world: World, scheduling: dict[str, Any], message: str) -> None:
    """The fields are checked like those of a group."""
    with pytest.raises(ApiError, match=message):
        world.create(JOBS, "j", job(scheduling=scheduling))


@pytest.mark.parametrize(
    ("scheduling", "message"),
    [
        ({"schedulingPolicy": {"basic": {}}}, "the basic/gang policy variant is immutable after creation"),
        ({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}, "disruptionMode: .*field is immutable"),
        (None, "spec.scheduling: Invalid value: field cannot be cleared once set"),
    ],
)
def test_other_scheduling_of_a_job_is_immutable(world: World, scheduling: Any, message: str) -> None:
    """Only the size of its gang can change."""
    world.create(JOBS, "j", job())
    with pytest.raises(ApiError, match=message):
        world.set(JOBS, "j", scheduling=scheduling)

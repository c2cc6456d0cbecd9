"""The lives of pods on simulated kubelets, in virtual time: starts, exits, restarts and stops of containers."""

import itertools
from typing import Any

import pytest

from kubestow.apiserver.store.records import Change
from support.apiserver.world import START, World, template

CONTAINERS = [{"name": "c", "image": "i"}]

pytestmark = pytest.mark.world(nodes=1)


def create_pod(world: World, annotations: dict[str, str] | None = None, *, name: str = "p", **spec: Any) -> None:
    """Create a pod that behaves according to annotations."""
    made = template("i", annotations, **spec)
    metadata = {"annotations": made["metadata"].get("annotations", {}), "labels": {"app": name}}
    world.create("pods", name, {**made["spec"], **spec}, metadata=metadata)


def states(world: World, kind: str = "containerStatuses") -> dict[str, str]:
    """Return the state of each container, with its reason or exit code."""
    found = {}
    for one in world.status("pods", "p").get(kind, ()):
        ((state, more),) = one["state"].items()
        found[one["name"]] = f"{state} {more.get('reason', '')}".strip()
    return found


def conditions(world: World) -> dict[str, str]:
    """Return the status of conditions by type."""
    return {one["type"]: one["status"] for one in world.status("pods", "p")["conditions"]}


def container(world: World) -> dict[str, Any]:
    """Return the status of the only container."""
    (found,) = world.status("pods", "p")["containerStatuses"]
    status: dict[str, Any] = found
    return status


def test_a_pod_is_created_then_runs_then_is_ready(world: World) -> None:
    """Each step is in the status."""
    create_pod(world, {"start-seconds": "5", "ready-seconds": "5"})
    world.run(2)
    assert (world.phases(), states(world)) == (["Pending"], {"c": "waiting ContainerCreating"})
    waiting = {"PodReadyToStartContainers", "Ready", "ContainersReady"}
    assert {type_ for type_, status in conditions(world).items() if status == "False"} == waiting
    assert conditions(world).keys() - waiting == {"PodScheduled", "Initialized"}
    assert "podIP" not in world.status("pods", "p")
    world.run(5)
    assert (world.phases(), states(world)) == (["Running"], {"c": "running"})
    unready = world.condition("pods", "p", "Ready")
    assert (unready["reason"], unready["message"]) == ("ContainersNotReady", "containers with unready status: [c]")
    world.run(5)
    assert set(conditions(world).values()) == {"True"}
    assert (container(world)["ready"], container(world)["started"], container(world)["restartCount"]) == (True, True, 0)


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        ("Never", "0", "Succeeded", 0),
        ("Never", "3", "Failed", 0),
        ("OnFailure", "0", "Succeeded", 0),
        ("OnFailure", "3", "Running", 2),
        ("Always", "0", "Running", 2),
        ("Always", "3", "Running", 2),
    ],
)
def test_a_container_that_exits_is_restarted_or_not(
    world: World, policy: str, code: str, phase: str, restarts: int
) -> None:
    """According to the restart policy: at once the first time, ten seconds later the second."""
    create_pod(world, {"run-seconds": "10", "exit-code": code}, restartPolicy=policy)
    world.run(35)
    assert (world.phases(), container(world)["restartCount"]) == ([phase], restarts)
    if not restarts:
        assert container(world)["state"]["terminated"]["exitCode"] == int(code)
        assert world.condition("pods", "p", "Ready")["reason"] == ("PodCompleted" if code == "0" else "PodFailed")


def test_a_failing_container_is_restarted_with_backoff(world: World) -> None:
    """After 0, 10, 20, 40, ... seconds, at most five minutes."""
    starts: list[float] = []

    def note(change: Change) -> None:
        for one in change.record.object()["status"].get("containerStatuses", ()):
            if one["state"].get("running") and world.clock.time not in starts and one["restartCount"] == len(starts):
                starts.append(world.clock.time)

    world.watch("pods", note)
    create_pod(world, {"run-seconds": "1", "exit-code": "1"})
    world.run(15)
    waiting = container(world)
    assert waiting["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert waiting["state"]["waiting"]["message"].startswith(
        "back-off 20s restarting failed container=c pod=p_default("
    )
    assert waiting["lastState"]["terminated"]["exitCode"] == 1
    world.run(2000)
    gaps = [round(later - earlier) - 1 for earlier, later in itertools.pairwise(starts)]
    assert gaps[:8] == [0, 10, 20, 40, 80, 160, 300, 300]


def test_init_containers_run_one_after_another(world: World) -> None:
    """The main containers wait for them."""
    inits = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    create_pod(world, {"run-seconds.a": "10", "run-seconds.b": "10"}, initContainers=inits)
    world.run(5)
    assert states(world, "initContainerStatuses") == {"a": "running", "b": "waiting PodInitializing"}
    assert (world.phases(), states(world)) == (["Pending"], {"c": "waiting PodInitializing"})
    assert world.condition("pods", "p", "Initialized")["message"] == "containers with incomplete status: [a b]"
    world.run(10)
    assert states(world, "initContainerStatuses")["a"] == "terminated Completed"
    assert states(world, "initContainerStatuses")["b"] == "running"
    world.run(10)
    assert (world.phases(), conditions(world)["Initialized"]) == (["Running"], "True")


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("Always", "Pending")])
def test_commands_of_init_containers_are_predicted(world: World, policy: str, phase: str) -> None:
    """As those of other containers."""
    inits = [{"name": "a", "image": "i", "command": ["sleep", "3"]}, {"name": "b", "image": "i", "command": ["false"]}]
    create_pod(world, {}, initContainers=inits, restartPolicy=policy)
    world.run(3)
    assert states(world, "initContainerStatuses")["a"] == "running"
    world.run(10)
    assert world.status("pods", "p")["phase"] == phase
    status = world.condition("pods", "p", "Initialized")
    assert (status["status"], status["reason"]) == ("False", "ContainersNotInitialized")


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("Always", "Pending")])
def test_an_init_container_that_fails(world: World, policy: str, phase: str) -> None:
    """It fails the pod, or is restarted."""
    create_pod(world, {"exit-code.a": "1"}, initContainers=[{"name": "a", "image": "i"}], restartPolicy=policy)
    world.run(20)
    assert world.phases() == [phase]


def test_a_sidecar_starts_before_and_does_not_keep_a_pod_from_ending(world: World) -> None:
    """It is restarted regardless of the pod's policy, until the pod ends."""
    side = {"name": "side", "image": "i", "restartPolicy": "Always"}
    create_pod(world, {"run-seconds": "30", "run-seconds.side": "8"}, initContainers=[side], restartPolicy="Never")
    world.run(5)
    assert states(world, "initContainerStatuses") == {"side": "running"}
    assert conditions(world)["Ready"] == "True"
    world.run(10)
    assert world.status("pods", "p")["initContainerStatuses"][0]["restartCount"] == 1
    world.run(20)
    assert world.phases() == ["Succeeded"]
    assert states(world, "initContainerStatuses")["side"].startswith("terminated")


def test_a_pod_that_takes_too_long_fails(world: World) -> None:
    """activeDeadlineSeconds after the kubelet received it."""
    create_pod(world, {"run-seconds": "inf"}, activeDeadlineSeconds=20, restartPolicy="Never")
    world.run(19)
    assert world.phases() == ["Running"]
    world.run(2)
    status = world.status("pods", "p")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


def removed_after(world: World, **options: Any) -> int:
    """Return the seconds from the deletion of a pod until it is removed."""
    world.run(5)
    world.delete("pods", "p", **options)
    begun = world.clock.time
    world.until(lambda: world.find("pods", "p") is None, 600)
    return round(world.clock.time - begun)


HOOK = [{**CONTAINERS[0], "lifecycle": {"preStop": {"sleep": {"seconds": 10}}}}]


@pytest.mark.parametrize(
    ("annotations", "spec", "options", "seconds"),
    [
        ({}, {}, {}, 1),
        ({"stop-seconds": "7"}, {}, {}, 7),
        ({"stop-seconds": "100"}, {}, {}, 30),
        ({"stop-seconds": "100"}, {"terminationGracePeriodSeconds": 5}, {}, 5),
        ({"stop-seconds": "100"}, {}, {"grace_seconds": 3}, 3),
        ({"stop-seconds": "2"}, {"containers": HOOK}, {}, 12),
        ({"stop-seconds": "2"}, {"containers": HOOK}, {"grace_seconds": 4}, 4),
        ({}, {}, {"grace_seconds": 0}, 0),
    ],
)
def test_a_pod_has_its_grace_period_to_stop(
    world: World, annotations: dict[str, str], spec: dict[str, Any], options: dict[str, int], seconds: int
) -> None:
    """A preStop hook sleeps first; afterwards remaining containers are killed."""
    create_pod(world, annotations, **spec)
    assert removed_after(world, **options) == seconds


def test_the_exit_code_shows_how_a_pod_stopped(world: World) -> None:
    """143 when it was terminated, 137 when it was killed."""
    seen: dict[str, list[tuple[str, int]]] = {}

    def note(change: Change) -> None:
        status = change.record.object()["status"]
        for one in status.get("containerStatuses", ()):
            if "terminated" in one["state"]:
                seen.setdefault(change.record.name, []).append(
                    (status["phase"], one["state"]["terminated"]["exitCode"])
                )

    world.watch("pods", note)
    create_pod(world, name="gentle")
    create_pod(world, {"stop-seconds": "100"}, name="stubborn")
    world.run(5)
    world.delete("pods", "gentle")
    world.delete("pods", "stubborn")
    world.run(60)
    assert {name: ends[0] for name, ends in seen.items()} == {"gentle": ("Failed", 143), "stubborn": ("Failed", 137)}


def test_a_shorter_grace_period_cuts_a_long_one_short(world: World) -> None:
    """A second deletion shortens it."""
    create_pod(world, {"stop-seconds": "100"})
    world.run(5)
    world.delete("pods", "p", grace_seconds=60)
    world.run(5)
    assert removed_after(world, grace_seconds=2) == 2


def test_a_readiness_gate_is_set_by_a_client(world: World) -> None:
    """Containers are ready, the pod only once the condition is true."""
    create_pod(world, readinessGates=[{"conditionType": "example.com/open"}])
    world.run(5)
    ready = world.condition("pods", "p", "Ready")
    assert (ready["status"], ready["reason"], conditions(world)["ContainersReady"]) == (
        "False", "ReadinessGatesNotReady", "True",
    )  # fmt: skip
    assert ready["message"] == 'corresponding condition of pod readiness gate "example.com/open" does not exist.'
    gate = {"type": "example.com/open", "status": "True"}
    world.update("pods", "p", lambda one: one["status"]["conditions"].append(gate), sub="status")
    world.run(1)
    assert conditions(world)["Ready"] == "True"


def amounts(cpu: str) -> dict[str, Any]:
    """Return the resources of a container."""
    return {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu, "memory": "1Gi"}}


def resize(world: World, cpu: str, name: str = "p") -> None:
    """Request another amount of CPU."""
    world.update("pods", name, lambda one: one["spec"]["containers"][0].update(resources=amounts(cpu)), sub="resize")
    world.run(1)


def sized(cpu: str, **more: Any) -> list[dict[str, Any]]:
    """Return a container with requests."""
    return [{**CONTAINERS[0], "resources": amounts(cpu), **more}]


def test_a_pod_is_resized_in_place(world: World) -> None:
    """Its container continues with other resources."""
    create_pod(world, containers=sized("1"))
    world.run(5)
    resize(world, "2")
    status = container(world)
    assert (status["allocatedResources"]["cpu"], status["resources"]["limits"]["cpu"], status["restartCount"]) == (
        "2",
        "2",
        0,
    )
    assert "PodResizePending" not in conditions(world)
    resize(world, "3")
    assert container(world)["allocatedResources"]["cpu"] == "3"


def test_a_container_can_be_restarted_on_resize(world: World) -> None:
    """resizePolicy."""
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    create_pod(world, containers=sized("1", resizePolicy=policy))
    world.run(5)
    resize(world, "2")
    assert (container(world)["restartCount"], container(world)["allocatedResources"]["cpu"]) == (1, "2")


def test_a_resize_is_deferred_or_infeasible(world: World) -> None:
    """More than the node's capacity is infeasible, more than its free capacity is deferred."""
    create_pod(world, containers=sized("4"))
    create_pod(world, name="other", containers=sized("3"))
    world.run(5)
    resize(world, "9")
    assert world.condition("pods", "p", "PodResizePending")["reason"] == "Infeasible"
    resize(world, "6")
    pending = world.condition("pods", "p", "PodResizePending")
    assert (pending["reason"], container(world)["allocatedResources"]["cpu"]) == ("Deferred", "4")
    world.delete("pods", "other")
    world.run(5)
    assert container(world)["allocatedResources"]["cpu"] == "6"
    assert "PodResizePending" not in conditions(world)


def annotate(world: World, **annotations: str) -> None:
    """Annotate the node."""
    texts = {f"kubestow.dev/{key}": value for key, value in annotations.items()}
    world.update("nodes", "node-0", lambda one: one["metadata"].setdefault("annotations", {}).update(texts))


@pytest.mark.parametrize(
    ("first", "second", "reason", "message"),
    [
        (
            {"resources": {"requests": {"cpu": "5"}}}, {"resources": {"requests": {"cpu": "4"}}}, "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000",
        ),
        (
            {"ports": [{"containerPort": 1, "hostPort": 80}]},
            {"ports": [{"containerPort": 1, "hostPort": 80, "hostIP": "1.2.3.4"}]}, "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
    ],
)  # fmt: skip
def test_a_node_rejects_an_unscheduled_pod_that_does_not_fit(
    world: World, first: dict[str, Any], second: dict[str, Any], reason: str, message: str
) -> None:
    """A pod with a node name in its spec must fit beside earlier pods."""
    node = world.all("nodes")[0]["metadata"]["name"]
    for name, container in (("first", first), ("second", second)):
        world.create("pods", name, {"nodeName": node, "containers": [{**CONTAINERS[0], **container}]})
    world.run(5)
    assert world.status("pods", "first")["phase"] == "Running"
    status = world.status("pods", "second")
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", reason, f"Pod was rejected: {message}")


def test_extended_resources_in_the_capacity_become_allocatable(world: World) -> None:
    """A user adds them to the capacity of a node."""
    name = world.all("nodes")[0]["metadata"]["name"]
    world.update("nodes", name, lambda one: one["status"]["capacity"].update({"a.b/c": "5"}), "status")
    world.run(1)
    assert world.status("nodes", name)["allocatable"]["a.b/c"] == "5"
    world.update("nodes", name, lambda one: one["status"]["capacity"].pop("a.b/c"), "status")
    world.run(1)
    assert "a.b/c" not in world.status("nodes", name)["allocatable"]


def test_a_node_that_shuts_down_stops_its_pods(world: World) -> None:
    """They fail with a reason; no other pod starts."""
    create_pod(world)
    world.run(5)
    annotate(world, shutdown="true")
    world.run(5)
    status = world.status("pods", "p")
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
    assert status["message"] == "Pod was terminated in response to imminent node shutdown."
    assert conditions(world)["DisruptionTarget"] == "True"
    ready = world.condition("nodes", "node-0", "Ready")
    assert (ready["status"], ready["message"]) == ("False", "node is shutting down")
    create_pod(world, name="late", nodeName="node-0")
    world.run(5)
    assert (world.status("pods", "late")["phase"], world.status("pods", "late")["reason"]) == ("Failed", "NodeShutdown")


def test_a_node_that_is_not_ready_does_not_update_its_pods(world: World) -> None:
    """Once it is ready again, it reports all changes."""
    create_pod(world, {"run-seconds": "20"}, restartPolicy="Never")
    world.run(5)
    annotate(world, ready="false")
    world.run(60)
    assert world.phases() == ["Running"]
    annotate(world, ready="true")
    world.run(1)
    assert world.phases() == ["Succeeded"]


def test_a_phase_set_by_a_client_is_final(world: World) -> None:
    """The kubelet does not restart the pod."""
    create_pod(world, {"run-seconds": "20"}, restartPolicy="Never")
    world.run(5)
    world.update("pods", "p", lambda one: one["status"].update(phase="Failed", reason="Evicted"), sub="status")
    world.run(60)
    assert (world.phases(), world.status("pods", "p")["reason"]) == (["Failed"], "Evicted")


def test_a_pod_continues_after_its_node_recovers(world: World) -> None:
    """It ends at the same time as without the interruption."""
    create_pod(world, {"run-seconds": "100"}, restartPolicy="Never")
    world.run(5)
    annotate(world, ready="unknown")
    world.run(10)
    annotate(world, ready="true")
    world.run(84)
    assert world.phases() == ["Running"]
    world.run(5)
    assert world.phases() == ["Succeeded"]


def test_a_node_shuts_down_without_controllers() -> None:
    """The kubelet alone stops its pods."""
    world = World(1, wanted="none")
    create_pod(world, nodeName="node-0")
    world.run(5)
    annotate(world, shutdown="true")
    world.run(5)
    assert world.status("pods", "p")["reason"] == "Terminated"


def test_the_failure_rate_fails_some_pods(world: World) -> None:
    """About the given proportion; the seed determines which ones."""
    for number in range(100):
        create_pod(world, {"failure-rate": "0.3"}, name=f"p{number}", restartPolicy="Never")
    world.run(20)
    assert 15 <= world.phases().count("Failed") <= 45


def test_invalid_annotations_are_ignored(world: World) -> None:
    """The pod behaves as without them."""
    invalid = {"run-seconds": "soon", "exit-code": "-", "failure-rate": "much", "start-seconds": "-5"}
    create_pod(world, invalid, restartPolicy="Never")
    world.run(5)
    assert world.phases() == ["Running"]
    world.run(10)
    assert world.phases() == ["Succeeded"]


def test_lives_are_restored_after_a_restart() -> None:
    """A new fleet on the same store continues where the old one stopped."""
    world = World(1)
    create_pod(world, {"run-seconds": "100"}, restartPolicy="Never")
    world.run(50)
    again = World(1)
    again.clock.time = world.clock.time
    for storage in ("nodes", "pods"):
        for one in world.all(storage):
            again.store.put(storage, one)
    again.run(50)
    assert again.phases() == ["Running"]
    again.run(5)
    assert again.phases() == ["Succeeded"]
    ended = again.status("pods", "p")["containerStatuses"][0]["state"]["terminated"]
    assert ended["startedAt"] == "2026-01-01T00:00:01Z"
    assert again.clock.time > START + 100

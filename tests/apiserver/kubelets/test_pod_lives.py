"""What stand-in kubelets make of a pod: containers start, exit, are tried again and stopped, in virtual time."""

import itertools
from typing import Any

import pytest

from apiserver.world import START, World, template
from kubestow.apiserver.store.records import Change

CONTAINERS = [{"name": "c", "image": "i"}]


@pytest.fixture
def world() -> World:
    """One node; pods start and stop within a second, and run for ten if they are meant to end."""
    return World(1)


def pod(world: World, annotations: dict[str, str] | None = None, *, name: str = "p", **spec: Any) -> None:
    """A pod that does what its annotations say."""
    made = template("i", annotations, **spec)
    metadata = {"annotations": made["metadata"].get("annotations", {}), "labels": {"app": name}}
    world.create("pods", name, {**made["spec"], **spec}, metadata=metadata)


def states(world: World, kind: str = "containerStatuses") -> dict[str, str]:
    """The state of each container, with its reason or exit code."""
    found = {}
    for one in world.status("pods", "p").get(kind, ()):
        ((state, more),) = one["state"].items()
        found[one["name"]] = f"{state} {more.get('reason', '')}".strip()
    return found


def conditions(world: World) -> dict[str, str]:
    """Status of conditions by type."""
    return {one["type"]: one["status"] for one in world.status("pods", "p")["conditions"]}


def container(world: World) -> dict[str, Any]:
    """The status of the only container."""
    (found,) = world.status("pods", "p")["containerStatuses"]
    told: dict[str, Any] = found
    return told


def test_a_pod_is_created_then_runs_then_is_ready(world: World) -> None:
    """And tells so at each step."""
    pod(world, {"start-seconds": "5", "ready-seconds": "5"})
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
    """As the restart policy says: at once the first time, ten seconds later the second."""
    pod(world, {"run-seconds": "10", "exit-code": code}, restartPolicy=policy)
    world.run(35)
    assert (world.phases(), container(world)["restartCount"]) == ([phase], restarts)
    if not restarts:
        assert container(world)["state"]["terminated"]["exitCode"] == int(code)
        assert world.condition("pods", "p", "Ready")["reason"] == ("PodCompleted" if code == "0" else "PodFailed")


def test_a_container_that_keeps_failing_is_tried_less_and_less_often(world: World) -> None:
    """After 0, 10, 20, 40, ... seconds, at most five minutes."""
    starts: list[float] = []

    def note(change: Change) -> None:
        for one in change.record.object()["status"].get("containerStatuses", ()):
            if one["state"].get("running") and world.clock.time not in starts and one["restartCount"] == len(starts):
                starts.append(world.clock.time)

    world.watch("pods", note)
    pod(world, {"run-seconds": "1", "exit-code": "1"})
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
    """The others wait for them."""
    inits = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    pod(world, {"run-seconds.a": "10", "run-seconds.b": "10"}, initContainers=inits)
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
def test_init_containers_do_what_their_commands_say(world: World, policy: str, phase: str) -> None:
    """Where that can be told, as of other containers."""
    inits = [{"name": "a", "image": "i", "command": ["sleep", "3"]}, {"name": "b", "image": "i", "command": ["false"]}]
    pod(world, {}, initContainers=inits, restartPolicy=policy)
    world.run(3)
    assert states(world, "initContainerStatuses")["a"] == "running"
    world.run(10)
    assert world.status("pods", "p")["phase"] == phase
    told = world.condition("pods", "p", "Initialized")
    assert (told["status"], told["reason"]) == ("False", "ContainersNotInitialized")


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("Always", "Pending")])
def test_an_init_container_that_fails(world: World, policy: str, phase: str) -> None:
    """Fails the pod, or is tried again."""
    pod(world, {"exit-code.a": "1"}, initContainers=[{"name": "a", "image": "i"}], restartPolicy=policy)
    world.run(20)
    assert world.phases() == [phase]


def test_a_sidecar_starts_before_and_does_not_keep_a_pod_from_ending(world: World) -> None:
    """It is restarted whatever the policy of the pod, until the pod is done."""
    side = {"name": "side", "image": "i", "restartPolicy": "Always"}
    pod(world, {"run-seconds": "30", "run-seconds.side": "8"}, initContainers=[side], restartPolicy="Never")
    world.run(5)
    assert states(world, "initContainerStatuses") == {"side": "running"}
    assert conditions(world)["Ready"] == "True"
    world.run(10)
    assert world.status("pods", "p")["initContainerStatuses"][0]["restartCount"] == 1
    world.run(20)
    assert world.phases() == ["Succeeded"]
    assert states(world, "initContainerStatuses")["side"].startswith("terminated")


def test_a_pod_that_takes_too_long_fails(world: World) -> None:
    """activeDeadlineSeconds after the kubelet saw it."""
    pod(world, {"run-seconds": "inf"}, activeDeadlineSeconds=20, restartPolicy="Never")
    world.run(19)
    assert world.phases() == ["Running"]
    world.run(2)
    status = world.status("pods", "p")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


def gone_after(world: World, **options: Any) -> int:
    """How many seconds after it is asked to a pod is gone."""
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
    """A preStop hook sleeps first; what is left when the time is over is killed."""
    pod(world, annotations, **spec)
    assert gone_after(world, **options) == seconds


def test_the_last_state_of_a_pod_tells_how_it_stopped(world: World) -> None:
    """143 when it was asked to, 137 when it was killed; seen before it goes."""
    seen: dict[str, list[tuple[str, int]]] = {}

    def note(change: Change) -> None:
        status = change.record.object()["status"]
        for one in status.get("containerStatuses", ()):
            if "terminated" in one["state"]:
                seen.setdefault(change.record.name, []).append(
                    (status["phase"], one["state"]["terminated"]["exitCode"])
                )

    world.watch("pods", note)
    pod(world, name="gentle")
    pod(world, {"stop-seconds": "100"}, name="stubborn")
    world.run(5)
    world.delete("pods", "gentle")
    world.delete("pods", "stubborn")
    world.run(60)
    assert {name: ends[0] for name, ends in seen.items()} == {"gentle": ("Failed", 143), "stubborn": ("Failed", 137)}


def test_a_shorter_grace_period_cuts_a_long_one_short(world: World) -> None:
    """Deleting again in a hurry."""
    pod(world, {"stop-seconds": "100"})
    world.run(5)
    world.delete("pods", "p", grace_seconds=60)
    world.run(5)
    assert gone_after(world, grace_seconds=2) == 2


def test_a_readiness_gate_is_opened_by_somebody_else(world: World) -> None:
    """Containers are ready, the pod is not until the condition is true."""
    pod(world, readinessGates=[{"conditionType": "example.com/open"}])
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
    """Resources of a container."""
    return {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu, "memory": "1Gi"}}


def resize(world: World, cpu: str, name: str = "p") -> None:
    """Asks for another amount of cpu."""
    world.update("pods", name, lambda one: one["spec"]["containers"][0].update(resources=amounts(cpu)), sub="resize")
    world.run(1)


def sized(cpu: str, **more: Any) -> list[dict[str, Any]]:
    """A container of some size."""
    return [{**CONTAINERS[0], "resources": amounts(cpu), **more}]


def test_a_pod_is_resized_in_place(world: World) -> None:
    """Its container goes on, with other resources."""
    pod(world, containers=sized("1"))
    world.run(5)
    resize(world, "2")
    told = container(world)
    assert (told["allocatedResources"]["cpu"], told["resources"]["limits"]["cpu"], told["restartCount"]) == (
        "2",
        "2",
        0,
    )
    assert "PodResizePending" not in conditions(world)
    resize(world, "3")
    assert container(world)["allocatedResources"]["cpu"] == "3"


def test_a_container_may_ask_to_be_restarted_when_resized(world: World) -> None:
    """resizePolicy."""
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    pod(world, containers=sized("1", resizePolicy=policy))
    world.run(5)
    resize(world, "2")
    assert (container(world)["restartCount"], container(world)["allocatedResources"]["cpu"]) == (1, "2")


def test_a_resize_waits_for_room_or_is_refused(world: World) -> None:
    """The node has eight; what it never has is infeasible, what others hold is deferred until they go."""
    pod(world, containers=sized("4"))
    pod(world, name="other", containers=sized("3"))
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


def annotate(world: World, **said: str) -> None:
    """Annotates the node."""
    texts = {f"kubestow.dev/{key}": value for key, value in said.items()}
    world.update("nodes", "node-0", lambda one: one["metadata"].setdefault("annotations", {}).update(texts))


@pytest.mark.parametrize(
    ("first", "second", "reason", "told"),
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
def test_a_node_rejects_what_nobody_scheduled_and_does_not_fit(
    world: World, first: dict[str, Any], second: dict[str, Any], reason: str, told: str
) -> None:
    """A pod that names its node itself has to fit beside those before it."""
    node = world.all("nodes")[0]["metadata"]["name"]
    for name, container in (("first", first), ("second", second)):
        world.create("pods", name, {"nodeName": node, "containers": [{**CONTAINERS[0], **container}]})
    world.run(5)
    assert world.status("pods", "first")["phase"] == "Running"
    status = world.status("pods", "second")
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", reason, f"Pod was rejected: {told}")


def test_a_node_offers_the_extended_resources_it_is_said_to_have(world: World) -> None:
    """Whoever adds them to its capacity finds them allocatable, as with a kubelet."""
    name = world.all("nodes")[0]["metadata"]["name"]
    world.update("nodes", name, lambda one: one["status"]["capacity"].update({"a.b/c": "5"}), "status")
    world.run(1)
    assert world.status("nodes", name)["allocatable"]["a.b/c"] == "5"
    world.update("nodes", name, lambda one: one["status"]["capacity"].pop("a.b/c"), "status")
    world.run(1)
    assert "a.b/c" not in world.status("nodes", name)["allocatable"]


def test_a_node_that_shuts_down_stops_its_pods(world: World) -> None:
    """They have failed, and say why; none starts any more."""
    pod(world)
    world.run(5)
    annotate(world, shutdown="true")
    world.run(5)
    status = world.status("pods", "p")
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
    assert status["message"] == "Pod was terminated in response to imminent node shutdown."
    assert conditions(world)["DisruptionTarget"] == "True"
    ready = world.condition("nodes", "node-0", "Ready")
    assert (ready["status"], ready["message"]) == ("False", "node is shutting down")
    pod(world, name="late", nodeName="node-0")
    world.run(5)
    assert (world.status("pods", "late")["phase"], world.status("pods", "late")["reason"]) == ("Failed", "NodeShutdown")


def test_a_node_that_is_not_ready_tells_nothing_of_its_pods(world: World) -> None:
    """Back again, it tells what happened meanwhile."""
    pod(world, {"run-seconds": "20"}, restartPolicy="Never")
    world.run(5)
    annotate(world, ready="false")
    world.run(60)
    assert world.phases() == ["Running"]
    annotate(world, ready="true")
    world.run(1)
    assert world.phases() == ["Succeeded"]


def test_a_pod_that_ends_elsewhere_stays_ended(world: World) -> None:
    """The kubelet does not bring it back."""
    pod(world, {"run-seconds": "20"}, restartPolicy="Never")
    world.run(5)
    world.update("pods", "p", lambda one: one["status"].update(phase="Failed", reason="Evicted"), sub="status")
    world.run(60)
    assert (world.phases(), world.status("pods", "p")["reason"]) == (["Failed"], "Evicted")


def test_what_is_due_survives_a_silent_spell(world: World) -> None:
    """A pod goes on where it was when its node is back, and ends on time."""
    pod(world, {"run-seconds": "100"}, restartPolicy="Never")
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
    pod(world, nodeName="node-0")
    world.run(5)
    annotate(world, shutdown="true")
    world.run(5)
    assert world.status("pods", "p")["reason"] == "Terminated"


def test_some_pods_fail_by_chance(world: World) -> None:
    """About as many as the rate says; which ones depends on the seed alone."""
    for number in range(100):
        pod(world, {"failure-rate": "0.3"}, name=f"p{number}", restartPolicy="Never")
    world.run(20)
    assert 15 <= world.phases().count("Failed") <= 45


def test_nonsense_in_annotations_is_ignored(world: World) -> None:
    """The pod does what it would do without."""
    said = {"run-seconds": "soon", "exit-code": "-", "failure-rate": "much", "start-seconds": "-5"}
    pod(world, said, restartPolicy="Never")
    world.run(5)
    assert world.phases() == ["Running"]
    world.run(10)
    assert world.phases() == ["Succeeded"]


def test_lives_are_taken_up_after_a_restart() -> None:
    """A new fleet over the same store goes on where the old one was."""
    world = World(1)
    pod(world, {"run-seconds": "100"}, restartPolicy="Never")
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

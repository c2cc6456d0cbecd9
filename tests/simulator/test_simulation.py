"""A cluster in virtual time: running, inspecting and forking it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.contrib.numa.topology import NodeResourceTopology
from kubestow.simulator import Latencies, Simulation
from kubestow.simulator.bulk import Template
from kubestow.simulator.checking import InvariantError
from kubestow.simulator.contents import ObjectError
from support.scenarios.gangs import TREE_GATES, features
from support.simulator.objects import deployment, nodes, pod

Simulate = Callable[..., Simulation]


def _bindings(simulation: Simulation) -> list[tuple[float, str, str]]:
    """Return a list of bindings (time, pod, node) that is filled as the simulation runs."""
    found: list[tuple[float, str, str]] = []

    def listen(which: tuple[type, str], old: Any, new: Any, phase: str) -> None:
        if which[0] is Pod and new is not None and new.spec.nodeName and not (old and old.spec.nodeName):
            found.append((round(simulation.time, 4), which[1], new.spec.nodeName))

    simulation.plane.listeners.append(listen)
    return found


def _annotate(simulation: Simulation, node: str, ready: str) -> None:
    """Make a node's kubelet report that it is ready or not ready, or (unknown) stop reporting."""
    simulation.update("Node", node, lambda one: one["metadata"].update(annotations={"kubestow.dev/ready": ready}))


def test_a_deployment_becomes_pods_that_run(simulate: Simulate) -> None:
    """The controllers create pods, the scheduler places them, kubelets start them."""
    simulation = simulate(*nodes(3), deployment("web", 5))
    simulation.settle()
    assert len(list(simulation.scheduled_pods())) == 5
    assert simulation.get("Deployment", "web")["status"]["readyReplicas"] == 5  # type: ignore[index]


def test_an_object_that_a_plugin_cannot_read_is_refused(simulate: Simulate) -> None:
    """It names the object and the field; at a live cluster the plugin would not see the object."""
    simulation = simulate(kinds=(NodeResourceTopology,))
    head = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": "n"}}
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "available": "many"}]}
    with pytest.raises(ObjectError, match=r"NodeResourceTopology n: .*'many'.*zones\[0\]\.resources\[0\]"):
        simulation.add({**head, "zones": [zone]})


def test_jobs_end_and_free_their_resources(simulate: Simulate) -> None:
    """A pod that has ended frees its resources for the next one, in virtual hours and real milliseconds."""
    simulation = simulate(*nodes(1, cpu=1))
    for number in range(3):
        simulation.add(pod(f"p{number}", "800m", run=3600, restartPolicy="Never"))
    simulation.run_for(2 * 3600)
    assert simulation.get("Pod", "p0")["status"]["phase"] == "Succeeded"  # type: ignore[index]
    assert [one.key for one in simulation.pending_pods()] == ["default/p2"]
    assert simulation.time == 2 * 3600


def test_a_gang_is_placed_whole_or_not_at_all(simulate: Simulate) -> None:
    """With the gates of pod groups; a node that is added later lets all of it in at once."""
    head: dict[str, Any] = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    gang = {**head, "metadata": {"name": "train"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    member = {"schedulingGroup": {"podGroupName": "train"}}
    workers = [pod(f"worker-{number}", "1500m", **member) for number in range(3)]
    simulation = simulate(*nodes(2, cpu=2), gang, *workers, features=features("GenericWorkload"))
    simulation.run_for(60)
    assert (len(list(simulation.scheduled_pods())), len(list(simulation.pending_pods()))) == (0, 3)
    simulation.add(*nodes(1, cpu=2, name="late-{}"))
    simulation.run_for(60)
    assert len(list(simulation.scheduled_pods())) == 3


def test_a_tree_of_groups_is_placed_whole_or_not_at_all(simulate: Simulate) -> None:
    """With the gate of composite pod groups."""
    head = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    reference = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    objects: list[dict[str, Any]] = [{**head, "metadata": {"name": "top"}, "spec": policy | reference}]
    for name in "ab":
        spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": "top", **reference}
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
        objects += [group | {"spec": spec}, pod(name, "1500m", schedulingGroup={"podGroupName": name})]
    simulation = simulate(*nodes(1, cpu=2), *objects, features=features(*TREE_GATES))
    simulation.run_for(60)
    assert list(simulation.scheduled_pods()) == []
    simulation.add(*nodes(1, cpu=2, name="late-{}"))
    simulation.run_for(60)
    assert len(list(simulation.scheduled_pods())) == 2


def test_devices_with_a_taint_rule_are_not_allocated(simulate: Simulate) -> None:
    """The scheduler knows the rule, like the controller that evicts pods."""
    head: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c"}}
    selected = {"deviceSelector": {"driver": "d.example.com"}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    objects: list[dict[str, Any]] = [
        {**head, "kind": "DeviceClass", "spec": {}},
        {**head, "kind": "ResourceSlice", "spec": {"driver": "d.example.com", "nodeName": "node-0"}},
        {**head, "kind": "ResourceClaim"},
        {**head, "kind": "DeviceTaintRule", "spec": selected},
    ]
    objects[1]["spec"] |= {"pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d"}]}
    objects[2]["spec"] = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    simulation = simulate(*nodes(1), *objects, pod("p", resourceClaims=[{"name": "c", "resourceClaimName": "c"}]))
    simulation.run_for(10)
    assert [one.key for one in simulation.pending_pods()] == ["default/p"]


def test_the_pods_of_a_group_share_its_devices(simulate: Simulate) -> None:
    """One claim is created and reserved for the group, which is placed on the node of its device."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    group: dict[str, Any] = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
    group["spec"] = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": claims}
    device: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "t"}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    offered = {"driver": "d.example.com", "nodeName": "node-1", "pool": pool, "devices": [{"name": "d"}]}
    request = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "t"}}]}}
    devices = [
        {**device, "kind": "DeviceClass", "spec": {}},
        {**device, "kind": "ResourceSlice", "spec": offered},
        {**device, "kind": "ResourceClaimTemplate", "spec": {"spec": request}},
    ]
    members = [pod(f"p{one}", resourceClaims=claims, schedulingGroup={"podGroupName": "g"}) for one in range(3)]
    gates = features("GenericWorkload", "DRAWorkloadResourceClaims")
    simulation = simulate(*nodes(2), group, *devices, *members, features=gates)
    simulation.run_for(60)
    assert [one.spec.nodeName for one in simulation.scheduled_pods()] == ["node-1"] * 3
    (claim,) = simulation.objects("ResourceClaim")
    assert [one["resource"] for one in claim["status"]["reservedFor"]] == ["podgroups"]
    assert {one["status"]["phase"] for one in simulation.objects("Pod")} == {"Running"}


def test_nothing_happens_before_its_latency(simulate: Simulate) -> None:
    """The scheduler receives a pod late, and its binding takes effect late."""
    simulation = simulate(*nodes(1), latencies=Latencies(request=2.0, watch=3.0))
    simulation.run_for(10)
    found = _bindings(simulation)
    simulation.add(pod("p"))
    simulation.settle()
    assert found == [(15.0, "default/p", "node-0")]


def test_step_goes_from_moment_to_moment(simulate: Simulate) -> None:
    """Each step advances time to the next change."""
    simulation = simulate(*nodes(1))
    seen = []
    while simulation.time < 0.1 and simulation.step():
        seen.append(simulation.time)
    assert seen == sorted(set(seen))
    assert seen


def test_a_silent_node_loses_its_pods(simulate: Simulate) -> None:
    """After the grace period the node is tainted; after the tolerated five minutes its pods are replaced elsewhere."""
    simulation = simulate(*nodes(2), deployment("web", 4))
    simulation.settle()
    _annotate(simulation, "node-0", "unknown")
    simulation.run_for(60)
    taints = {one["key"] for one in simulation.get("Node", "node-0")["spec"]["taints"]}  # type: ignore[index]
    assert taints == {"node.kubernetes.io/unreachable"}
    simulation.run_for(600)
    alive = [one for one in simulation.scheduled_pods() if one.metadata.deletionTimestamp is None]
    assert {one.spec.nodeName for one in alive} == {"node-1"}
    assert len(alive) == 4


def test_a_node_that_reports_again_is_ready(simulate: Simulate) -> None:
    """Its taints are removed, and pods can be placed on it."""
    simulation = simulate(*nodes(1))
    simulation.settle()
    for ready in ("unknown", "true"):
        _annotate(simulation, "node-0", ready)
        simulation.run_for(100)
    simulation.add(pod("p"))
    simulation.settle()
    assert simulation.node_of("p") == "node-0"


def _crowd(simulation: Simulation, *, in_bulk: bool, count: int = 60) -> list[tuple[float, str, str]]:
    """Run pods that arrive every two seconds and end, with a node failing meanwhile; return the bindings."""
    found = _bindings(simulation)
    simulation.run_for(1)
    body = pod("x", "1500m", restartPolicy="Never")
    arriving = Template(
        simulation.plane,
        simulation.settings.pace,
        {"metadata": {"labels": {"app": "a"}}, "spec": body["spec"]},
        "default",
    )
    arriving.is_plain = arriving.is_plain and in_bulk

    def arrive(number: int) -> Callable[[Simulation], None]:
        return lambda sim: sim.bulk.create(arriving, f"p{number}", 20.0 + number % 7 * 1.37)

    def fail(sim: Simulation) -> None:
        _annotate(sim, "node-1", "false")

    for number in range(count):
        simulation.at(2.003 * number, arrive(number))
    simulation.at(50.0, fail)
    simulation.run_for(600)
    return found


def test_bulk_pods_behave_like_ordinary_pods(simulate: Simulate) -> None:
    """The same pods are bound at the same times to the same nodes, through a node's failure, either way."""
    bulk, full = (_crowd(simulate(*nodes(3, cpu=4)), in_bulk=one) for one in (True, False))
    assert bulk == full
    assert len(bulk) >= 50


def test_bulk_pods_leave_nothing_behind(simulate: Simulate) -> None:
    """No trace of them remains after their end, except for those that a failed kubelet never stopped."""
    simulation = simulate(*nodes(3, cpu=4))
    _crowd(simulation, in_bulk=True, count=20)
    assert {one.spec.nodeName for one in simulation.scheduled_pods()} == {"node-1"}
    assert not simulation.bulk._pods
    assert not simulation.bulk._on_node


def test_the_same_seed_gives_the_same_run(simulate: Simulate) -> None:
    """Two runs agree in every binding; another seed breaks ties differently."""
    first, second, other = (
        _crowd(simulate(*nodes(9, cpu=4), deployment("web", 7), seed=seed), in_bulk=True) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_a_fork_is_independent(simulate: Simulate) -> None:
    """Changes in a fork do not affect the original, and planned actions run in both."""
    simulation = simulate(*nodes(2), deployment("web", 3))
    simulation.settle()
    simulation.at(100.0, lambda sim: sim.add(pod("late")))
    with simulation.fork() as fork:
        fork.add(pod("extra"))
        fork.run_for(200)
        assert {"default/late", "default/extra"} <= set(fork.pod_names())
        assert fork.time > simulation.time
    assert len(simulation.pod_names()) == 3
    simulation.run_for(200)
    assert "default/late" in simulation.pod_names()


def test_a_fork_keeps_bulk_pods(simulate: Simulate) -> None:
    """Pods that are not objects of the store continue and end in the fork and in the original."""
    simulation = simulate(*nodes(1))
    simulation.run_for(1)
    arriving = Template(simulation.plane, simulation.settings.pace, pod("x", restartPolicy="Never"), "default")
    simulation.bulk.create(arriving, "p", 30.0)
    simulation.run_for(10)
    with simulation.fork() as fork:
        for one in (simulation, fork):
            assert one.node_of("p") == "node-0"
            one.run_for(30)
            assert one.pod_names() == []


def test_would_the_pending_pods_fit_with_more_nodes(simulate: Simulate) -> None:
    """An autoscaler's question: which pods are still pending with three more nodes?"""
    simulation = simulate(*nodes(1, cpu=2), deployment("web", 8))
    simulation.settle()
    assert len(simulation.pending_pods()) == 6
    with simulation.fork() as fork:
        fork.add(*nodes(3, cpu=2, name="new-{}"))
        fork.settle()
        assert fork.pending_pods() == []


def test_higher_priority_evicts(simulate: Simulate) -> None:
    """Preemption works as in a live cluster: the victim stops, and the preemptor takes its place."""
    importance = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    simulation = simulate(*nodes(1, cpu=1), importance, pod("low", "800m"))
    simulation.settle()
    simulation.add(pod("important", "800m", priorityClassName="high"))
    simulation.settle()
    assert simulation.node_of("important") == "node-0"
    assert simulation.get("Pod", "low") is None


def test_objects_with_a_uid_keep_their_state(simulate: Simulate) -> None:
    """An object with a UID keeps its status, and pods without an existing owner are not collected as garbage."""
    running = pod("p") | {"status": {"phase": "Running"}}
    running["metadata"] |= {
        "uid": "1",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "9"}],
    }
    running["spec"]["nodeName"] = "node-1"
    simulation = simulate(*nodes(2), running)
    simulation.run_for(100)
    assert simulation.node_of("p") == "node-1"


def test_objects_that_own_each_other_are_rejected(simulate: Simulate) -> None:
    """The message lists the cycle."""

    def owned(name: str, uid: str, owner: str) -> dict[str, Any]:
        one = pod(name)
        one["metadata"] |= {
            "uid": uid,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": owner}],
        }
        return one

    with pytest.raises(ObjectError, match="Pod a is owned by Pod b is owned by Pod a"):
        simulate(owned("a", "1", "2"), owned("b", "2", "1"))


def test_an_unknown_field_is_rejected(simulate: Simulate) -> None:
    """As in the API server's strict validation."""
    with pytest.raises(ObjectError, match=r'Pod p: .*unknown field "spec\.conatiners"'):
        simulate(pod("p", conatiners=[]))


def test_a_broken_invariant_ends_the_run(simulate: Simulate) -> None:
    """If the scheduler's state differs from the cluster's, the run stops with an explanation."""
    simulation = simulate(*nodes(1), pod("p"))
    simulation.settle()
    simulation.core.cluster.remove_pod(simulation.get("Pod", "p")["metadata"]["uid"])  # type: ignore[index]
    with pytest.raises(InvariantError, match="pod default/p is on node-0, and the scheduler takes it to be on None"):
        simulation.run_for(1)


def test_a_notebook_can_simulate(simulate: Simulate) -> None:
    """Within a running event loop."""

    async def cell() -> str:
        simulation = simulate(*nodes(1), pod("p"))
        simulation.settle()
        return simulation.node_of("p")

    assert asyncio.run(cell()) == "node-0"

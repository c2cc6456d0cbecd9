"""The kubectl commands for changes: patches of owners, labels, taints and manifests."""

import json
import shlex
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.meta import OwnerReference
from kubestow.api.pod import Pod, PodSpec
from kubestow.apiserver.patches import strategic
from kubestow.apiserver.schema.reader import struct_of
from kubestow.insight.explain.commands import commands_for, patch_between
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.explain.world import World
from kubestow.insight.explain.would_fit import found_changes
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod
from support.insight.objects import SETUP, WEB, ZONE, in_any, required, spreading
from support.insight.storage import claim, manual_class, storage_class

NODE = make_node("a", zone="zone-a")
GATE_REMOVED = '{"spec": {"schedulingGates": [{"$patch": "delete", "name": "wait"}]}}'


def owned(pod: Pod, kind: str, name: str = "web") -> Pod:
    reference = OwnerReference("apps/v1", kind, name, f"uid-{name}", True)
    return replace(pod, metadata=replace(pod.metadata, ownerReferences=(reference,)))


def commands(pod: Pod, *objects: Any) -> tuple[str, ...]:
    """Return the commands of the first suggestion."""
    run = DryRun(World(SETUP, objects, 0.0), PodInfo(pod))
    return commands_for(run.world, pod, found_changes(run, ())[0].change)


def patch_in(command: str) -> Any:
    words = shlex.split(command.replace("|", " "))
    return json.loads(words[words.index("-p") + 1])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Deployment", ["kubectl patch deployment web -n default -p"]),
        ("DaemonSet", ["kubectl patch daemonset web -n default -p"]),
        ("StatefulSet", ["kubectl patch statefulset web -n default -p", "kubectl delete pod x -n default"]),
        ("Rollout", ["# patch the pod template of Rollout default/web:"]),
    ],
)
def test_pods_are_changed_by_way_of_their_owner(kind: str, expected: list[str]) -> None:
    """Owners that do not replace their pods at once need a deletion."""
    found = commands(owned(make_pod("x", cpu=9), kind), NODE)
    assert [command[: len(start)] for command, start in zip(found, expected, strict=True)] == expected


def test_a_patch_has_only_what_differs() -> None:
    found = commands(owned(make_pod("x", cpu=9, memory="1Gi", node_selector={ZONE: "zone-a"}), "Deployment"), NODE)
    container = {"name": "main", "resources": {"requests": {"cpu": "4"}}}
    assert patch_in(found[0]) == {"spec": {"template": {"spec": {"containers": [container]}}}}


def test_a_pod_without_an_owner_is_created_again() -> None:
    (command,) = commands(make_pod("x", cpu=9), NODE)
    read, patched, replaced = command.split(" | ")
    assert read == "kubectl get pod x -n default -o json"
    assert patched.startswith("kubectl patch --local -f - -o json -p '")
    assert replaced == "kubectl replace --force -f -"


def test_a_job_is_created_again_without_its_generated_selector() -> None:
    patch = patch_in(commands(owned(make_pod("x", cpu=9), "Job"), NODE)[0])
    assert patch["spec"]["selector"] is None
    assert patch["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] is None


def test_tolerations_of_admission_are_not_part_of_a_template() -> None:
    automatic = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    pod = owned(make_pod("x", spec={"tolerations": [automatic]}), "Deployment")
    patch = patch_in(commands(pod, make_node("a", taints=["t:NoSchedule"]))[0])
    kept = patch["spec"]["template"]["spec"]["tolerations"]
    assert kept == [{"key": "t", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("pod", "nodes", "expected"),
    [
        (make_pod("x"), [make_node("a", unschedulable=True)], ("kubectl uncordon a",)),
        (
            make_pod("x", node_selector={"disk": "ssd"}),
            [make_node("a")],
            ("kubectl label node a --overwrite disk=ssd",),
        ),
        (
            make_pod("x", gates=["wait"]),
            [NODE],
            (f"kubectl patch pod x -n default -p '{GATE_REMOVED}'",),
        ),
        (
            make_pod("x", cpu=2, priority=5),
            [make_node("a", cpu=2), make_pod("low", cpu=2, node="a", priority=0)],
            ("kubectl delete pod low -n default",),
        ),
    ],
)
def test_changes_of_nodes_and_pods(pod: Pod, nodes: list[Any], expected: tuple[str, ...]) -> None:
    assert commands(pod, *nodes) == expected


def all_commands(pod: Pod, *objects: Any) -> dict[str, tuple[str, ...]]:
    run = DryRun(World(SETUP, objects, 0.0), PodInfo(pod))
    return {one.change.text: commands_for(run.world, pod, one.change) for one in found_changes(run, ())}


def test_what_kubectl_cannot_do_is_a_comment() -> None:
    found = all_commands(
        make_pod("x", cpu=9, resources={"example.com/gpu": 1}), make_node("a", resources={"example.com/gpu": 1})
    )
    assert found["5 more cpu on node a"] == ("# node a: cpu 4 -> 9",)
    found = all_commands(
        make_pod("x", resources={"example.com/gpu": 2}), make_node("a", resources={"example.com/gpu": 1})
    )
    (command,) = found["1 more example.com/gpu on node a"]
    assert command.startswith("kubectl patch node a --subresource status -p")


def test_a_removed_taint_is_named_with_its_effect() -> None:
    found = all_commands(make_pod("x"), make_node("a", taints=["t=v:NoSchedule"]))
    assert found["taint t=v:NoSchedule removed from node a"] == ("kubectl taint node a t=v:NoSchedule-",)


AWAY = required("podAntiAffinity", topologyKey=ZONE, labelSelector=WEB)
SPECS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"node_selector": {ZONE: "zone-A", "disk": "ssd"}}, {"node_selector": {ZONE: "zone-a", "disk": "ssd"}}),
    ({"node_selector": {"zones": "a"}}, {"node_selector": {ZONE: "a"}}),
    ({"spec": in_any([(ZONE, "In", "a")])}, {"spec": in_any([(ZONE, "In", "b")])}),
    ({"spec": in_any([(ZONE, "In", "a")])}, {}),
    ({"spec": spreading(ZONE)}, {}),
    ({"spec": spreading(ZONE)}, {"spec": spreading(ZONE, 3)}),
    ({"spec": spreading("zones")}, {"spec": spreading(ZONE)}),
    ({"spec": AWAY}, {"spec": {"affinity": {"podAntiAffinity": {}}}}),
    ({"host_ports": [80, 81]}, {"host_ports": [81]}),
    ({"claims": ["a", "b"]}, {"claims": ["b", "c"]}),
    ({"gates": ["a", "b"]}, {"gates": ["b"]}),
    ({"cpu": 3, "memory": "1Gi"}, {"cpu": 2}),
    ({"tolerations": ["a:NoSchedule"]}, {"tolerations": ["a:NoSchedule", "b:NoSchedule"]}),
]


@pytest.mark.parametrize(("former", "latter"), SPECS)
def test_an_api_server_gets_the_new_pod_from_the_patch(former: dict[str, Any], latter: dict[str, Any]) -> None:
    """The patch is applied with the merge keys of the API's schema."""
    schema, old, new = struct_of("v1", "Pod"), make_pod("x", **former), make_pod("x", **latter)
    before, after = ({"spec": msgspec.json.decode(msgspec.json.encode(pod.spec))} for pod in (old, new))
    patch = json.loads(json.dumps(patch_between(before, after)))
    patched = strategic.apply(before, patch, schema)
    assert _normalized(convert(PodSpec, patched["spec"])) == _normalized(new.spec)


def _normalized(spec: PodSpec) -> str:
    """Return a spec as text: volumes in order, because a patch appends new ones, and without empty objects."""
    tree = msgspec.json.decode(msgspec.json.encode(spec))
    tree["volumes"] = sorted(tree.get("volumes", ()), key=lambda one: one["name"])
    return json.dumps({key: value for key, value in tree.items() if value not in ({}, {"podAntiAffinity": {}})})


def test_claims_and_volumes_are_created_with_manifests() -> None:
    """A claim with another class is created again; a volume of a class without a provisioner is created."""
    pod = make_pod("db", claims=["data"])
    run = DryRun(World(SETUP, [NODE, storage_class("fast"), claim("data", "fsat")], 0.0), PodInfo(pod))
    found = commands_of(run)
    assert patch_in(found[0]) == {"spec": {"storageClassName": "fast"}, "status": None}
    run = DryRun(World(SETUP, [NODE, storage_class("fast")], 0.0), PodInfo(pod))
    manifest = json.loads(commands_of(run)[0].splitlines()[1])
    assert (manifest["kind"], manifest["metadata"]) == (
        "PersistentVolumeClaim",
        {"name": "data", "namespace": "default"},
    )
    assert manifest["spec"]["storageClassName"] == "fast"
    run = DryRun(World(SETUP, [NODE, manual_class("local"), claim("data", "local")], 0.0), PodInfo(pod))
    manifest = json.loads(commands_of(run)[0].splitlines()[1])
    assert (manifest["kind"], manifest["spec"]["storageClassName"]) == ("PersistentVolume", "local")


def commands_of(run: DryRun) -> tuple[str, ...]:
    return explained(run).commands

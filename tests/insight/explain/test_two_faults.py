"""Pods with two faults at once: for every pair a change, or a combination of changes, is found, and it works."""

from itertools import combinations
from typing import Any, NamedTuple

import click
import pytest
from msgspec.structs import replace

from kubestow import config
from kubestow.api.pod import Affinity, Pod
from kubestow.cli.explain.screen import lines_of
from kubestow.cli.terminal import printable
from kubestow.config import Features
from kubestow.insight.explain.against import against
from kubestow.insight.explain.causes import causes_of
from kubestow.insight.explain.changes import changed, combine_changes
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.explain.together import nearest_together
from kubestow.insight.explain.world import Setup, World
from kubestow.insight.explain.would_fit import found_changes
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod, make_pod_group
from support.insight.objects import ZONE, required
from support.insight.rejections import FAST, RESTARTING
from support.insight.storage import DRIVER, at, bound, claim, csi_node, volume
from support.plugins import device_world as devices

FEATURES = Features(generic_workload=True, node_declared_features=True, dra_device_taint_rules=True)
SETUP = Setup(config.default(FEATURES), FEATURES)
ME, HOST = {"me": "1"}, "kubernetes.io/hostname"


class Fault(NamedTuple):
    """Something that keeps a pod from two nodes, `a` and `b`."""

    pod: Pod
    objects: tuple[Any, ...] = ()
    node: dict[str, Any] = {}


def pod(**options: Any) -> Pod:
    return make_pod("x", **options)


def spread(key: str, **fields: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": ME}}]}


def pods(prefix: str, **options: Any) -> tuple[Pod, ...]:
    return tuple(make_pod(f"{prefix}{name}", node=name, priority=9, **options) for name in "ab")


FAULTS = {
    "value": Fault(pod(node_selector={"disk": "sdd"})),
    "key": Fault(pod(node_selector={"dsk": "ssd"})),
    "label": Fault(pod(node_selector={"rack": "7"})),
    "cpu": Fault(pod(cpu=9)),
    "resource": Fault(pod(resources={"nvidia.com/gpu": 1})),
    "taint": Fault(pod(), node={"taints": ["t=1:NoSchedule"]}),
    "cordon": Fault(pod(), node={"unschedulable": True}),
    "pods": Fault(pod(), node={"pods": 0}),
    "gate": Fault(pod(gates=["wait"])),
    "claim": Fault(pod(claims=["data"]), (FAST,)),
    "class": Fault(pod(claims=["logs"]), (FAST, claim("logs", "fsat"))),
    "place": Fault(pod(claims=["old"]), (volume("pv-9", nodeAffinity=at(HOST, "gone")), bound("old", "pv-9"))),
    "zone": Fault(pod(claims=["far"]), (volume("pv-z", labels={ZONE: "zone-z"}), bound("far", "pv-z"))),
    "exclusive": Fault(
        pod(claims=["once"]),
        (
            volume("pv-1"),
            bound("once", "pv-1", accessModes=["ReadWriteOncePod"]),
            make_pod("user", node="a", claims=["once"]),
        ),
    ),
    "limit": Fault(
        pod(claims=["full"]),
        (FAST, csi_node("a", DRIVER, limit=0), csi_node("b", DRIVER, limit=0), claim("full", "fast")),
    ),
    "affinity": Fault(
        pod(spec=required("podAffinity", topologyKey=ZONE, labelSelector={"matchLabels": {"app": "cahce"}})),
        (make_pod("cache", labels={"app": "cache"}, node="a"),),
    ),
    "anti-affinity": Fault(
        pod(spec=required("podAntiAffinity", topologyKey=ZONE, labelSelector={"matchLabels": {"app": "w"}})),
        pods("w", labels={"app": "w"}),
    ),
    "others' anti-affinity": Fault(
        pod(labels=ME),
        pods("e", spec=required("podAntiAffinity", topologyKey=ZONE, labelSelector={"matchLabels": ME})),
    ),
    "domains": Fault(pod(labels=ME, spec=spread(ZONE, minDomains=5)), pods("s", labels=ME)),
    "port": Fault(pod(host_ports=[80]), pods("h", host_ports=[80])),
    "node": Fault(pod(spec={"nodeName": "aa"})),
    "feature": Fault(pod(spec=RESTARTING)),
    "resource claim": Fault(
        devices.claiming("x", "mien"),
        (
            devices.device_class(),
            *(devices.device_slice(name, devices.gpus(1)) for name in "ab"),
            devices.claim("mine"),
        ),
    ),
    "device": Fault(
        devices.claiming("x", "other"),
        (
            devices.device_class(),
            *(
                devices.device_slice(name, devices.gpus(1, taints=["broken:NoSchedule"]), pool=f"{name}2", name=name)
                for name in "ab"
            ),
            devices.claim("other"),
        ),
    ),
    "group": Fault(pod(group="trian"), (make_pod_group("train", min_count=1),)),
    "gang": Fault(pod(group="few"), (make_pod_group("few", min_count=4),)),
}
NOT_TOGETHER = {("group", "gang"), ("cpu", "feature"), ("resource", "feature"), ("port", "feature")}
"""Faults in the same field."""
PAIRS = [two for two in combinations(FAULTS, 2) if two not in NOT_TOGETHER]


def merged(one: Pod, other: Pod) -> Pod:
    """Return a pod with the faults of two."""
    rules, more = one.spec.affinity or Affinity(), other.spec.affinity or Affinity()
    affinity = Affinity(
        podAffinity=rules.podAffinity or more.podAffinity, podAntiAffinity=rules.podAntiAffinity or more.podAntiAffinity
    )
    plain = make_pod("x").spec
    fields = {
        name: getattr(other.spec, name)
        for name in plain.__struct_fields__
        if getattr(other.spec, name) != getattr(plain, name)
    }
    fields["nodeSelector"] = {**one.spec.nodeSelector, **other.spec.nodeSelector}
    for name in ("volumes", "resourceClaims"):
        fields[name] = (*getattr(one.spec, name), *getattr(other.spec, name))
    fields["affinity"] = None if affinity == Affinity() else affinity
    labels = {**one.metadata.labels, **other.metadata.labels}
    return replace(one, metadata=replace(one.metadata, labels=labels), spec=replace(one.spec, **fields))


def run_of(*names: str) -> DryRun:
    faults = [FAULTS[name] for name in names]
    node = {key: value for fault in faults for key, value in fault.node.items()}
    nodes = [make_node(name, zone=f"zone-{name}", labels={"disk": "ssd"}, **node) for name in "ab"]
    wanted = merged(faults[0].pod, faults[-1].pod) if len(faults) > 1 else faults[0].pod
    world = World(SETUP, [*nodes, *(obj for fault in faults for obj in fault.objects)], 0.0)
    world.add_pending(wanted)
    return DryRun(world, world.remove_for_scheduling(wanted))


@pytest.mark.parametrize("names", PAIRS, ids=" and ".join)
def test_a_way_is_found_and_works(names: tuple[str, str]) -> None:
    """The screen fits a terminal."""
    run = run_of(*names)
    assert run.chosen is None
    single = found_changes(run, causes_of(run))
    change = single[0].change if single else combine_changes(nearest_together(run)[1])
    with changed(run.world, change):
        assert DryRun(run.world, PodInfo(change.pod or run.pod.pod)).chosen, change.text
    assert not DryRun(run.world, run.pod).chosen
    lines = click.unstyle(printable(lines_of(explained(run)))).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", FAULTS)
def test_a_way_to_a_given_node_is_found(name: str) -> None:
    found = against(run_of(name), "b")
    assert found.changes or found.together


def steps_for(wanted: Pod, *nodes: Any) -> list[str]:
    world = World(SETUP, nodes, 0.0)
    world.add_pending(wanted)
    return [step.text for step in nearest_together(DryRun(world, world.remove_for_scheduling(wanted)))[1]]


def test_a_request_is_lowered_before_a_node_is_enlarged() -> None:
    """There is a command for it, even if it is the larger change."""
    wanted = make_pod("x", cpu=40, node_selector={"disk": "sdd"})
    assert steps_for(wanted, make_node("a", cpu=4, labels={"disk": "ssd"})) == [
        "node selector disk=sdd changed to disk=ssd",
        "request of cpu lowered from 40 to 4",
    ]


def test_several_gates_are_removed_for_a_node_that_is_feasible_without_them() -> None:
    """No change is made for a node that rejects the pod for other reasons, too."""
    wanted = make_pod("x", gates=["a", "b"])
    tainted = make_node("a", taints=["dedicated=batch:NoSchedule"])
    assert steps_for(wanted, tainted, make_node("b")) == ["scheduling gate a removed", "scheduling gate b removed"]

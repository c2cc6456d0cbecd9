"""The overview of pending pods: groups by owner and cause, the change that helps most, and one more node."""

from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from kubestow.api.meta import OwnerReference
from kubestow.api.pod import Pod
from kubestow.insight.explain import overview
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.overview import PendingOverview, pending_overview
from kubestow.insight.explain.world import ExplainError, World
from kubestow.testing import make_node, make_pod
from support.insight.objects import APP, SETUP, WEB, ZONE, required
from support.insight.storage import claim, storage_class

NODES = [make_node(f"n{i}", zone=f"zone-{'abc'[i]}") for i in range(3)]
TEMPLATE = {"pod-template-hash": "5d"}


def owned(pod: Pod, name: str = "web-5d", kind: str = "ReplicaSet", created: str = "2026-01-01T00:00:00Z") -> Pod:
    owner = OwnerReference("apps/v1", kind, name, f"uid-{name}", True)
    metadata = replace(pod.metadata, ownerReferences=(owner,), creationTimestamp=created)
    return replace(pod, metadata=replace(metadata, labels={**metadata.labels, **TEMPLATE}))


def shown(*objects: Any, what_if_node: str = "") -> PendingOverview:
    world = World(SETUP, objects, 1_767_229_200.0)
    return pending_overview(world, list(world.pending.values()), what_if_node)


def test_pods_of_a_deployment_are_one_group() -> None:
    pods = [owned(make_pod(f"web-{i}", cpu=9)) for i in range(7)]
    (group,) = shown(*NODES, *pods).groups
    assert (group.owner, group.count, group.since) == ("Deployment default/web", 7, "2026-01-01T00:00:00Z")
    assert (group.plugin, group.cause) == ("NodeResourcesFit", "3 Insufficient cpu")
    assert group.pods == tuple(f"default/web-{i}" for i in range(5))


def test_the_remedy_counts_the_pods_for_which_there_is_room() -> None:
    """Each node has room for one pod of four CPUs, but there are seven pods."""
    pods = [owned(make_pod(f"web-{i}", cpu=9)) for i in range(7)]
    remedy = shown(*NODES, *pods).groups[0].remedy
    assert remedy is not None
    assert (remedy.change, remedy.helps) == ("request of cpu lowered from 9 to 4", 3)


def test_pods_of_one_owner_with_two_causes_are_two_groups() -> None:
    """The longest waiting group comes first."""
    old = owned(make_pod("web-old", node_selector={ZONE: "zone-A"}), created="2025-12-31T00:00:00Z")
    new = owned(make_pod("web-new", cpu=9), "web-6e")
    found = shown(*NODES, new, old).groups
    assert [(group.plugin, group.count) for group in found] == [("NodeAffinity", 1), ("NodeResourcesFit", 1)]


def test_pods_of_a_stateful_set_whose_claims_differ_are_one_group() -> None:
    """Each pod has a claim of its own; the cause of the first is shown."""
    claims = [claim(f"data-db-{i}", "fsat") for i in range(3)]
    pods = [owned(make_pod(f"db-{i}", claims=[f"data-db-{i}"]), "db", "StatefulSet") for i in range(3)]
    (group,) = shown(*NODES, storage_class("fast"), *claims, *pods).groups
    assert (group.owner, group.count) == ("StatefulSet default/db", 3)
    assert group.cause.startswith('persistentvolumeclaim "data-db-0" has no volume, and its storageclass "fsat"')
    assert group.remedy is not None
    assert group.remedy.helps == 1


def test_a_change_of_a_node_helps_other_owners_as_well() -> None:
    """Two owners wait for the same taint to be removed."""
    tainted = make_node("a", taints=["down:NoSchedule"], cpu=8, pods=110)
    pods = [owned(make_pod(f"{name}-0", cpu=1, tolerations=[]), f"{name}-5d") for name in ("x", "y")]
    groups = shown(replace(tainted, spec=replace(tainted.spec, taints=(), unschedulable=True)), *pods).groups
    assert [(one.remedy.change, one.remedy.helpsOthers) for one in groups if one.remedy is not None] == [
        ("node a uncordoned", 1)
    ] * 2


def test_replicas_that_exclude_each_other_are_counted_one_after_another() -> None:
    """A change of both pods does not help: the pods that are there exclude them. Another place helps one of them."""
    spec = required("podAntiAffinity", topologyKey="kubernetes.io/hostname", labelSelector=WEB)
    there = [owned(make_pod(f"p{i}", labels=APP, node=f"n{i}", spec=spec)) for i in range(3)]
    waiting = [owned(make_pod(f"q{i}", labels=APP, spec=spec)) for i in range(2)]
    (group,) = shown(*NODES, *there, *waiting).groups
    assert group.remedy is not None
    assert (group.remedy.side, group.remedy.helps) == ("cluster", 1)


def test_pods_that_fit_and_pods_of_other_schedulers_are_explained() -> None:
    other = make_pod("x", scheduler="default-schduler")
    groups = shown(*NODES, make_pod("fits", cpu=1), other).groups
    known = "the configuration has default-scheduler; did you mean default-scheduler?"
    assert [group.cause for group in groups] == [
        "it fits now, and will be tried again",
        f"no profile has schedulerName default-schduler; {known}",
    ]


def test_pods_with_equal_specs_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two owners with 20 pods each, two are evaluated."""
    runs = Mock(wraps=DryRun)
    monkeypatch.setattr(overview, "DryRun", runs)
    pods = [
        owned(make_pod(f"{name}-{i}", cpu=cpu), f"{name}-5d") for name, cpu in (("x", 9), ("y", 8)) for i in range(20)
    ]
    assert [group.count for group in shown(*NODES, *pods).groups] == [20, 20]
    assert runs.call_count == 2


def test_the_time_limit_leaves_the_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time for causes and changes, the reasons of the nodes are shown."""
    monkeypatch.setattr(overview, "_TIME_LIMIT", -1.0)
    (group,) = shown(*NODES, make_pod("x", node_selector={ZONE: "zone-A"})).groups
    assert (group.cause, group.remedy) == ("3 node(s) didn't match Pod's node affinity/selector", None)


def test_what_the_time_limit_leaves_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_TIME_LIMIT", -1.0)
    (note,) = shown(*NODES, *(owned(make_pod(f"web-{i}", cpu=9)) for i in range(3))).notes
    assert note.startswith("3 pods of 1 owner were not examined in -1 seconds")
    assert "Deployment default/web" in note


def test_two_changes_are_the_remedy_if_none_is_enough() -> None:
    (group,) = shown(*NODES, make_pod("x", cpu=9, gates=["wait"])).groups
    assert group.remedy is not None
    assert group.remedy.change == "scheduling gate wait removed, request of cpu lowered from 9 to 4"
    assert group.remedy.helps == 1


def test_the_world_is_unchanged_afterwards() -> None:
    """All pods are pending again, and no node has another pod."""
    world = World(SETUP, [*NODES, *(owned(make_pod(f"web-{i}", cpu=9)) for i in range(3))], 0.0)
    before = dict(world.pending), world.cluster.pod_count
    first = pending_overview(world, list(world.pending.values()), "all")
    assert (dict(world.pending), world.cluster.pod_count) == before
    assert pending_overview(world, list(world.pending.values()), "all") == first


def test_one_more_node_of_each_kind() -> None:
    """The kind that lets in most pods comes first; pods that no node of this kind takes do not count."""
    nodes = [make_node("small-1", cpu=2), make_node("small-2", cpu=2), make_node("large", cpu=8)]
    full = [
        make_pod(f"full-{node}", node=node, cpu=cpu) for node, cpu in (("small-1", 2), ("small-2", 2), ("large", 8))
    ]
    pods = [owned(make_pod(f"web-{i}", cpu=2)) for i in range(5)]
    found = shown(*nodes, *full, *pods, what_if_node="all").oneMoreNode
    assert [(one.like, one.nodes, one.pods, one.owners) for one in found] == [
        ("large", 1, 4, {"Deployment default/web": 4}),
        ("small-1", 2, 1, {"Deployment default/web": 1}),
    ]


def test_one_more_node_by_instance_type() -> None:
    types = [make_node(name, cpu=2, labels={"node.kubernetes.io/instance-type": name}) for name in ("m5.big", "r5.big")]
    pods = [make_pod("x", cpu=2, node_selector={"node.kubernetes.io/instance-type": "r5.big"})]
    busy = [make_pod(f"busy-{name}", node=name, cpu=1) for name in ("m5.big", "r5.big")]
    assert [one.pods for one in shown(*types, *busy, *pods, what_if_node="r5.big").oneMoreNode] == [1]
    with pytest.raises(ExplainError, match=r"instance type r6\.big; did you mean r5\.big"):
        shown(*types, what_if_node="r6.big")

"""NodeResourceTopologyMatch: alignment with NUMA zones, reservations until a node reports, and its arguments."""

import re
from typing import Any

import pytest
from msgspec import ValidationError, convert
from msgspec.structs import replace

from kubestow.contrib.numa import NodeResourceTopologyMatch
from kubestow.contrib.numa.fingerprint import fingerprint, xxh64
from kubestow.contrib.numa.topology import NodeResourceTopology
from kubestow.plugin import Pod
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod
from support.contrib import configured

RESERVING = {"cacheResyncPeriodSeconds": 5}


def zones(
    node: str, *cpus: int, policy: str = "single-numa-node", total: int = 4, pods: str = "", **attributes: str
) -> NodeResourceTopology:
    """Return a report with the free CPUs of each zone, which has plenty of memory."""
    listed = {"topologyManagerPolicy": policy, "topologyManagerScope": "pod", **attributes}
    if pods:
        listed["nodeTopologyPodsFingerprint"] = pods
    return make_object(
        NodeResourceTopology,
        node,
        attributes=[{"name": name, "value": value} for name, value in listed.items()],
        zones=[
            {
                "name": f"node-{number}",
                "type": "Node",
                "resources": [
                    {"name": "cpu", "available": cpu, "allocatable": total},
                    {"name": "memory", "available": "64Gi", "allocatable": "64Gi"},
                ],
            }
            for number, cpu in enumerate(cpus)
        ],
    )


def guaranteed(name: str, cpu: int, **fields: Any) -> Pod:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "image": "app", "resources": {"requests": amounts, "limits": amounts}}
    return make_pod(name, spec={"containers": [container]}, **fields)


def scheduler(args: dict[str, Any] | None = None) -> SchedulerHarness:
    harness = SchedulerHarness(configured("NodeResourceTopologyMatch", args or {}), plugins=[NodeResourceTopologyMatch])
    harness.cluster.add(make_node("n1", cpu=8))
    return harness


def message(harness: SchedulerHarness, pod: str) -> str:
    return harness.cluster.conditions(pod)["PodScheduled"].message


def run(harness: SchedulerHarness, pod: str) -> None:
    """Let the kubelet of the node start a pod."""
    found = harness.cluster.pod(pod)
    harness.cluster.update(replace(found, status=replace(found.status, phase="Running")))
    harness.run_until_idle()


def test_a_pod_waits_until_one_zone_has_enough() -> None:
    """Free CPUs of two zones do not add up; a new report retries the pod."""
    with scheduler() as harness:
        report = harness.cluster.add(zones("n1", 2, 2))
        harness.cluster.add(guaranteed("p", 3))
        harness.run_until_idle()
        assert "cannot align pod" in message(harness, "p")
        harness.cluster.update(replace(report, zones=zones("n1", 2, 3).zones))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n1"}


@pytest.mark.parametrize(
    ("free", "cpu", "fits"),
    [
        ((4, 4), 6, True),  # needs two zones, even on an empty node
        ((2, 2), 3, False),  # one zone is enough on an empty node
        ((3, 0), 3, True),
        ((4, 1), 6, False),
        ((4, 2), 6, True),
    ],
)
def test_the_policy_restricted_allows_no_more_zones_than_on_an_empty_node(
    free: tuple[int, int], cpu: int, fits: bool
) -> None:
    """A kubelet with this policy rejects a pod that would span more zones than its requests need."""
    with scheduler() as harness:
        harness.cluster.add(zones("n1", *free, policy="restricted"))
        harness.cluster.add(guaranteed("p", cpu))
        harness.run_until_idle()
        assert bool(harness.bindings) == fits


def test_containers_are_aligned_one_after_the_other_with_the_policy_restricted() -> None:
    """What a container takes from two zones is not left for the next one."""
    amounts = {"cpu": 6, "memory": "1Gi"}, {"cpu": 3, "memory": "1Gi"}
    containers = [
        {"name": f"c{number}", "image": "app", "resources": {"requests": own, "limits": own}}
        for number, own in enumerate(amounts)
    ]
    with scheduler() as harness:
        harness.cluster.update(make_node("n1", cpu=16))
        harness.cluster.add(zones("n1", 4, 4, policy="restricted", topologyManagerScope="container"))
        harness.cluster.add(make_pod("p", spec={"containers": containers}))
        harness.run_until_idle()
        assert "cannot align container" in message(harness, "p")


def test_without_reservations_a_report_is_believed_as_it_is() -> None:
    """As in scheduler-plugins, two pods may get the same CPUs before the node reports again."""
    with scheduler() as harness:
        harness.cluster.add(zones("n1", 4, 0))
        for name in ("a", "b"):
            harness.cluster.add(guaranteed(name, 3))
        harness.run_until_idle()
        assert len(harness.bindings) == 2


def test_a_pod_counts_in_every_zone_until_a_report_includes_it() -> None:
    """A report with the fingerprint of other pods changes nothing; the matching one releases the reservation."""
    with scheduler(RESERVING) as harness:
        first = harness.cluster.add(zones("n1", 4, 4, pods=fingerprint([])))
        harness.cluster.add(guaranteed("a", 3))
        harness.run_until_idle()
        harness.cluster.add(guaranteed("b", 3))
        harness.run_until_idle()
        assert harness.bindings == {"default/a": "n1"}
        run(harness, "a")
        late = harness.cluster.update(replace(first, zones=zones("n1", 4, 3).zones))
        harness.run_until_idle()
        assert harness.bindings == {"default/a": "n1"}
        matching = zones("n1", 1, 4, pods=fingerprint([("default", "a")]))
        harness.cluster.update(replace(late, zones=matching.zones, attributes=matching.attributes))
        harness.run_until_idle()
        assert harness.bindings == {"default/a": "n1", "default/b": "n1"}


def test_a_pod_that_is_deleted_before_a_report_includes_it_frees_what_was_reserved() -> None:
    """The earlier report is right again."""
    with scheduler(RESERVING) as harness:
        harness.cluster.add(zones("n1", 4, 0, pods=fingerprint([])))
        harness.cluster.add(guaranteed("a", 3))
        harness.run_until_idle()
        harness.cluster.add(guaranteed("b", 3))
        harness.run_until_idle()
        harness.cluster.delete(harness.cluster.pod("a"), grace_seconds=0)
        harness.run_until_idle()
        assert list(harness.bindings) == ["default/a", "default/b"]


def test_pods_that_ran_before_the_scheduler_started_are_part_of_the_first_report() -> None:
    """After a restart, nothing counts twice."""
    with scheduler(RESERVING) as harness:
        harness.cluster.add(guaranteed("old", 3, node="n1", status={"phase": "Running"}))
        harness.cluster.add(zones("n1", 1, 4, pods=fingerprint([("default", "unknown")])))
        harness.cluster.add(guaranteed("p", 3))
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n1"}


@pytest.mark.parametrize(
    ("mode", "exclusive", "fits"),
    [
        ("All", False, False),
        ("OnlyExclusiveResources", True, False),
        ("OnlyExclusiveResources", False, True),
        ("None", True, True),
    ],
)
def test_pods_of_other_schedulers_count_as_configured(mode: str, exclusive: bool, fits: bool) -> None:
    """By default all of them count; with OnlyExclusiveResources, those with CPUs or devices of their own."""
    with scheduler({**RESERVING, "cache": {"foreignPodsDetect": mode}}) as harness:
        harness.cluster.add(zones("n1", 4, 0))
        make = guaranteed if exclusive else make_pod
        harness.cluster.add(make("other", cpu=2, node="n1", scheduler="other"))
        harness.cluster.add(guaranteed("p", 3))
        harness.run_until_idle()
        assert ("default/p" in harness.bindings) == fits


def test_a_report_without_a_fingerprint_includes_the_pods_that_run() -> None:
    """Pods that the kubelet has not started yet go on counting."""
    with scheduler(RESERVING) as harness:
        first = harness.cluster.add(zones("n1", 4, 0))
        harness.cluster.add(guaranteed("a", 2))
        harness.run_until_idle()
        second = harness.cluster.update(replace(first, zones=zones("n1", 3, 0).zones))
        harness.cluster.add(guaranteed("b", 2))
        harness.run_until_idle()
        assert list(harness.bindings) == ["default/a"]
        run(harness, "a")
        harness.cluster.update(replace(second, zones=zones("n1", 2, 0).zones))
        harness.run_until_idle()
        assert list(harness.bindings) == ["default/a", "default/b"]


def test_a_fingerprint_may_leave_out_pods_without_resources_of_their_own() -> None:
    """The report says by which method its fingerprint was computed."""
    with scheduler(RESERVING) as harness:
        first = harness.cluster.add(zones("n1", 4, 0, pods=fingerprint([])))
        harness.cluster.add(guaranteed("a", 3))
        harness.cluster.add(make_pod("shared", cpu=1, node="n1", status={"phase": "Running"}))
        harness.run_until_idle()
        harness.cluster.add(guaranteed("b", 3))
        run(harness, "a")
        pods = fingerprint([("default", "a")])
        new = zones("n1", 0, 4, pods=pods, nodeTopologyPodsFingerprintMethod="with-exclusive-resources")
        harness.cluster.update(replace(first, zones=new.zones, attributes=new.attributes))
        harness.run_until_idle()
        assert list(harness.bindings) == ["default/a", "default/b"]


@pytest.mark.parametrize(("scope", "fits"), [("All", True), ("OnlyResources", False)])
def test_the_policy_of_a_report_applies_before_its_amounts(scope: str, fits: bool) -> None:
    """A kubelet that starts with another policy reports it, whether or not the report includes all pods."""
    with scheduler({**RESERVING, "cache": {"resyncScope": scope}}) as harness:
        first = harness.cluster.add(zones("n1", 2, 2, pods=fingerprint([])))
        harness.cluster.add(guaranteed("p", 4))
        harness.run_until_idle()
        assert harness.bindings == {}
        lenient = zones("n1", 2, 2, policy="none", pods=fingerprint([("default", "unknown")]))
        harness.cluster.update(replace(first, attributes=lenient.attributes))
        harness.run_until_idle()
        assert bool(harness.bindings) == fits


def test_a_node_to_which_a_pod_is_being_bound_can_be_refused() -> None:
    """With discardReservedNodes, one pod at a time is bound to a node."""
    args = configured("NodeResourceTopologyMatch", {"discardReservedNodes": True})
    with SchedulerHarness(args, plugins=[NodeResourceTopologyMatch], latency=5) as harness:
        harness.cluster.add(make_node("n1", cpu=8))
        harness.cluster.add(zones("n1", 4, 4))
        for name in ("a", "b"):
            harness.cluster.add(guaranteed(name, 1))
        harness.run_for(1)
        assert any("invalid node topology data" in note for note in harness.events.notes("FailedScheduling"))
        harness.run_for(600)
        assert len(harness.bindings) == 2


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"scoringStrategy": {"type": "Best"}}, 'scoringStrategy.type: Invalid value: "Best"'),
        ({"preemptionMode": "Maybe"}, 'preemptionMode: Invalid value: "Maybe": invalid PreemptionMode'),
        ({"cache": {"foreignPodsDetect": "Some"}}, "must be one of All, None, OnlyExclusiveResources"),
        ({"cacheResyncPeriod": 5}, "args.cacheResyncPeriod: is not a known field"),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, Any], problem: str) -> None:
    """The message names the field, as scheduler-plugins does."""
    with pytest.raises(ProfileError, match=re.escape(problem)):
        scheduler(args)


def test_a_node_without_a_report_takes_any_pod() -> None:
    """So does one whose report is deleted."""
    with scheduler(RESERVING) as harness:
        report = harness.cluster.add(zones("n1", 0, 0))
        harness.cluster.add(guaranteed("p", 3))
        harness.run_until_idle()
        assert harness.bindings == {}
        harness.cluster.delete(report)
        harness.cluster.add(guaranteed("q", 3))
        harness.run_until_idle()
        assert harness.bindings["default/q"] == "n1"


def test_a_report_with_an_invalid_amount_is_refused() -> None:
    """It cannot be decoded, so that the previous report of the node stays."""
    resources = [{"name": "cpu", "available": "some", "allocatable": 4}]
    with pytest.raises(ValidationError, match="quantity 'some'"):
        convert(
            {"metadata": {"name": "n1"}, "zones": [{"name": "node-0", "resources": resources}]}, NodeResourceTopology
        )


def test_without_the_definition_of_reports_nodes_take_any_pod() -> None:
    """Pods that were refused are retried when it is removed."""
    with scheduler() as harness:
        harness.cluster.add(zones("n1", 0, 0))
        harness.cluster.add(guaranteed("p", 3))
        harness.run_until_idle()
        assert harness.bindings == {}
        harness.remove_crd(NodeResourceTopology)
        harness.run_until_idle()
        assert harness.bindings == {"default/p": "n1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xEF46DB3751D8E999),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_of_xxh64(text: str, expected: int) -> None:
    """Texts shorter and longer than a block."""
    assert xxh64(text.encode()) == expected

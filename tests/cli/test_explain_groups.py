"""`kubestow explain podgroup/NAME`: which placements were tried, what stopped each, and what would help."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.explain_files import Files, gang, node, pod, refused, workers


def in_rack(name: str, rack: str) -> dict[str, Any]:
    made = node(name, "8")
    made["metadata"]["labels"]["rack"] = rack
    return made


INSTEAD = "kubestow explain ml/picky-0 --against NODE"
RACKS = [*(in_rack(f"a-{number}", "a") for number in range(3)), *(in_rack(f"b-{number}", "b") for number in range(2))]


@pytest.fixture
def racks(tmp_path: Path) -> Files:
    """A rack of three nodes, one of two, and gangs that want a rack for themselves."""
    return Files(
        tmp_path,
        *RACKS,
        gang("train", 4, topology="rack"),
        *workers("train", 4),
        gang("pair", 2, topology="rack"),
        *workers("pair", 2),
        gang("late", 4),
        *workers("late", 2),
        gang("empty", 2),
        gang("picky", 2),
        *workers("picky", 2, nodeSelector={"disk": "ssd"}),
    )


def test_every_placement_says_what_stopped_the_group(racks: Files) -> None:
    """With its own number of nodes, the best first."""
    output = racks.explain("podgroup/train").output
    assert output.startswith(
        "Pod group ml/train does not fit.\n  pod group is unschedulable, 0/2 placements are available, "
    )
    assert "  4 of its pods must have a node at once; 0 have one, 4 wait; 1 too few.\n" in output
    assert "       3  of 4 in a: 3 nodes\n          0/3 nodes are available: 3 Insufficient cpu." in output
    assert "       2  of 4 in b: 2 nodes\n          0/2 nodes are available: 2 Insufficient cpu." in output
    assert max(map(len, output.splitlines())) <= 80


def test_placements_that_say_the_same_are_one_row(tmp_path: Path) -> None:
    """However many racks there are."""
    nodes = [in_rack(f"n-{number}", f"r{number}") for number in range(5)]
    output = Files(tmp_path, *nodes, gang("train", 4, topology="rack"), *workers("train", 4)).explain("podgroup/train")
    assert "       1  of 4 in r0, r1, r2 and 2 more: 1 node each\n" in output.output


def test_what_is_suggested_for_a_group_was_tried(racks: Files) -> None:
    """Of the group, of the cluster as few nodes as are enough, and of all its pods alike."""
    decision = json.loads(racks.explain("podgroup/train", "-o", "json").output)
    assert {one["change"]: one["placed"] for one in decision["wouldFitIf"]} == {
        "minCount lowered from 4 to 3": 3,
        "topology constraint rack removed": 4,
        "a node like a-0 added": 4,
        "2 nodes like b-0 added": 4,
        "request of cpu lowered from 6 to 4 (of every pod)": 4,
    }
    assert (decision["outcome"], decision["chosen"], decision["missing"]) == ("unschedulable", {}, 1)
    picky = json.loads(racks.explain("podgroup/picky", "-o", "json").output)
    assert "node selector disk=ssd removed (of every pod)" in [one["change"] for one in picky["wouldFitIf"]]


def test_a_group_that_fits_is_shown_with_its_nodes(racks: Files) -> None:
    """All of its pods in one rack, and nothing is left behind for the next question."""
    decision = json.loads(racks.explain("podgroups/pair", "-n", "ml", "-o", "json").output)
    assert decision["outcome"] == "scheduled"
    assert decision["chosen"] == {"ml/pair-0": "b-0", "ml/pair-1": "b-1"}
    assert "wouldFitIf" not in decision


def test_the_number_of_missing_pods_of_a_gang_is_shown(racks: Files) -> None:
    """No node would help."""
    output = racks.explain("podgroup/late").output
    assert "  the gang waits for 2 more pods to be created\n" in output
    assert output.endswith(
        "Would fit if\n  group    2 more pods like ml/late-0 created\n           4 of its pods would have a node\n"
        "  group    minCount lowered from 4 to 2\n           2 of its pods would have a node\n"
    )


def test_a_pod_of_a_group_points_to_it(racks: Files) -> None:
    """By itself it would fit, if its gang is complete."""
    output = racks.explain("ml/train-0").output
    assert output.startswith("Pod ml/train-0 would go to a-0.\n")
    assert "pod group; see kubestow explain\npodgroup/train -n ml" in output
    assert racks.explain("ml/late-0").output.startswith("Pod ml/late-0 is held back by GangScheduling.\n")


def test_requests_are_lowered_as_little_as_is_enough(tmp_path: Path) -> None:
    """Three pods of a gang on two nodes of 8; where memory allows two on one node only, both limits count."""
    nodes = [node(f"n-{number}", "8") for number in range(2)]
    decision = json.loads(
        Files(tmp_path, *nodes, gang("train", 3), *workers("train", 3)).explain("podgroup/train", "-o", "json").output
    )
    assert "request of cpu lowered from 6 to 4 (of every pod)" in [one["change"] for one in decision["wouldFitIf"]]
    crowded = [*(node(f"n-{number}", "8") for number in range(2)), *workers("train", 5)]
    for one in crowded[2:]:
        one["spec"]["containers"][0]["resources"]["requests"]["memory"] = "4Gi"
    for one in crowded[:2]:
        one["status"]["allocatable"]["pods"] = "2" if one["metadata"]["name"] == "n-0" else "3"
    decision = json.loads(Files(tmp_path, *crowded, gang("train", 5)).explain("podgroup/train", "-o", "json").output)
    (lowered,) = [one["change"] for one in decision["wouldFitIf"] if "lowered from 6" in one["change"]]
    amount = lowered.removeprefix("request of cpu lowered from 6 to ").removesuffix(" (of every pod)")
    assert 2_600 < int(amount.removesuffix("m")) <= 2_666


def test_what_it_would_take_in_another_placement(racks: Files) -> None:
    """Named by its value, or by a node of it; only what helps there is suggested."""
    by_value, by_node = (
        json.loads(racks.explain("podgroup/train", "--against", name, "-o", "json").output) for name in ("b", "b-1")
    )
    assert by_value == by_node
    assert (by_value["against"], [one["name"] for one in by_value["placements"]]) == ("b", ["b"])
    assert {one["change"] for one in by_value["wouldFitIf"]} == {
        "minCount lowered from 4 to 2",
        "2 nodes like b-0 added",
        "request of cpu lowered from 6 to 4 (of every pod)",
    }
    fits = racks.explain("podgroup/pair", "--against", "a").output
    assert fits.startswith("Pod group ml/pair would fit in a.\n")
    assert fits.endswith("Note: without --against it would be scheduled in b.\n")


def test_a_group_of_a_file_is_tried_as_a_group(racks: Files) -> None:
    """Its pods take their nodes before the next are tried; a single pod is reported as one."""
    items = [gang("new", 2, topology="rack"), *workers("new", 2), pod("alone", "8", "ml")]
    for one in items:
        one["metadata"].pop("uid", None)
    manifest = {"apiVersion": "v1", "kind": "List", "items": items}
    decision = json.loads(racks.explain_pod(manifest, "-o", "json").output)["items"]
    assert [one.get("pod", one.get("podGroup")) for one in decision] == ["ml/new", "ml/alone"]
    assert (decision[0]["chosen"], decision[0]["placement"]) == ({"ml/new-0": "b-0", "ml/new-1": "b-1"}, "b")
    assert decision[1]["nodes"]["b-0"]["rejected"]["reasons"] == ["Insufficient cpu"]


def test_groups_that_cannot_be_explained_are_one_line(racks: Files) -> None:
    """No pod waits in it, it does not exist, or its name is ambiguous."""
    twice = Files(racks.folder, *RACKS, gang("train", 1), gang("train", 1, "other"), gang("empty", 2))
    for name, said in (
        ("empty", "pod group ml/empty has no pending pods; 0 have a node"),
        ("none", "there is no pod group none; existing: empty, train"),
        ("trian", "there is no pod group trian; did you mean train?"),
        ("train", "pod group train is ambiguous: choose one of ml/train, other/train"),
    ):
        assert refused(f"podgroup/{name}", "--cluster", twice.cluster) == [f"Error: {said}"]


def test_questions_that_are_not_about_groups_are_one_line(racks: Files) -> None:
    """It is said what to ask instead."""
    for group, option, name, said in (
        ("train", "--against", "z", "z is neither a value of label rack nor a node with this label"),
        (
            "picky",
            "--against",
            "b-0",
            f"pod group ml/picky has no topology constraint; use one of its pods: {INSTEAD}",
        ),
        (
            "train",
            "--node",
            "b-0",
            "--node applies to pods: use a pod of the group, kubestow explain ml/train-0 --node b-0",
        ),
    ):
        assert refused(f"podgroup/{group}", option, name, "--cluster", racks.cluster) == [f"Error: {said}"]


def test_a_kind_of_node_that_helps_a_group_is_found_among_many(tmp_path: Path) -> None:
    """The pods are too large for nodes of the other kinds."""
    small = [node(f"n-{number}", f"{number % 5 + 1}") for number in range(10)]
    files = Files(tmp_path, *small, node("big", "8"), gang("train", 2), *workers("train", 2))
    decision = json.loads(files.explain("podgroup/train", "-o", "json").output)
    assert "a node like big added" in [one["change"] for one in decision["wouldFitIf"]]


def test_what_stands_in_the_way_of_the_pods_is_named(tmp_path: Path) -> None:
    """The correction of a misspelt value is tried for every pod of the group."""
    near = [node(f"n{number}", "8") for number in range(2)]
    for one in near:
        one["metadata"]["labels"]["disk"] = "ssd"
    files = Files(tmp_path, *near, gang("train", 2), *workers("train", 2, nodeSelector={"disk": "SSD"}))
    output = files.explain("podgroup/train").output
    assert "In the way\n  - no node has disk=SSD; 2 nodes have ssd: did you mean that?\n" in output
    decision = json.loads(files.explain("podgroup/train", "-o", "json").output)
    first = decision["wouldFitIf"][0]["change"]
    assert first == "node selector disk=SSD changed to disk=ssd (of every pod)"
    assert decision["causes"][0]["similar"] == ["ssd"]

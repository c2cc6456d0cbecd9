"""`kubestow explain` for pod groups that are part of a composite pod group."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.explain_files import Files, gang, node, workers


def composite(name: str, least: int, **spec: Any) -> dict[str, Any]:
    spec["schedulingPolicy"] = {"gang": {"minGroupCount": least}}
    metadata = {"name": name, "namespace": "ml"}
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    return {**kind, "metadata": metadata, "spec": spec}


def part(name: str, least: int, parent: str) -> dict[str, Any]:
    group = gang(name, least)
    group["spec"]["parentCompositePodGroupName"] = parent
    return group


def test_a_group_is_tried_with_its_whole_tree(tmp_path: Path) -> None:
    """It would fit alone."""
    objects = [node("n", "8"), composite("all", 2), part("a", 1, "all"), part("b", 1, "all")]
    files = Files(tmp_path, *objects, *workers("a", 1), *workers("b", 1))
    found = json.loads(files.explain("podgroup/a", "-n", "ml", "-o", "json").output)
    assert found["outcome"] == "unschedulable"
    assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in found["message"]
    assert found["notes"] == ["it is part of composite pod group all, all pods of which are tried together."]
    assert "a node like n added" in [one["change"] for one in found["wouldFitIf"]]
    more = Files(tmp_path, node("m", "8"), *objects, *workers("a", 1), *workers("b", 1))
    assert json.loads(more.explain("podgroup/b", "-n", "ml", "-o", "json").output)["outcome"] == "scheduled"


def test_a_tree_that_is_not_complete(tmp_path: Path) -> None:
    """The explanation of a pod names the group that has too few groups, or does not exist."""
    files = Files(tmp_path, node("n", "8"), composite("all", 2), part("a", 1, "all"), *workers("a", 1))
    output = files.explain("ml/a-0").output
    assert "composite pod group all has 1 group with enough pods, and it needs 2" in " ".join(output.split())
    files = Files(tmp_path, node("n", "8"), part("a", 1, "all"), *workers("a", 1))
    output = files.explain("ml/a-0").output
    assert "parent composite pod group state not found for compositepodgroup/ml/all" in " ".join(output.split())


@pytest.mark.parametrize("parents", [{}, {"all": "other", "other": "all"}])
def test_a_group_without_a_complete_tree_does_not_fit(tmp_path: Path, parents: dict[str, str]) -> None:
    """It is in no tree if a parent does not exist, or is below itself."""
    groups = [composite(name, 1, parentCompositePodGroupName=parent) for name, parent in parents.items()]
    files = Files(tmp_path, node("n", "8"), *groups, part("a", 1, "all"), *workers("a", 1))
    found = json.loads(files.explain("podgroup/a", "-n", "ml", "-o", "json").output)
    assert found["outcome"] == "unschedulable"
    assert found["message"].startswith("failed to build hierarchy snapshot: ")
    assert found["chosen"] == {}
    assert [one["change"] for one in found["wouldFitIf"]] == ["parent all of pod group ml/a removed"]


def test_a_placement_cannot_be_chosen_for_a_group_of_a_tree(tmp_path: Path) -> None:
    files = Files(tmp_path, node("n", "8"), composite("all", 1), part("a", 1, "all"), *workers("a", 1))
    assert (
        "is tried with its composite pod group: omit --against" in files.explain("podgroup/a", "--against", "n").stderr
    )

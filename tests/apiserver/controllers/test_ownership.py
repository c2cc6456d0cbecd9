"""Owners and what they own: orphans are adopted, what has lost its owner goes."""

import pytest

from apiserver.world import LABELS, World, template, workload
from kubestow.apiserver.store.records import Change

SETS, DEPLOYMENTS = "replicasets.apps", "deployments.apps"


@pytest.fixture
def world() -> World:
    """Three nodes."""
    return World()


def names(world: World, storage: str = "pods") -> list[str]:
    """Names, sorted."""
    return sorted(one["metadata"]["name"] for one in world.all(storage))


def test_deleting_an_owner_takes_everything_along(world: World) -> None:
    """In the background: owner, sets and pods."""
    world.create(DEPLOYMENTS, "w", workload(replicas=3))
    world.run(10)
    world.delete(DEPLOYMENTS, "w")
    world.run(10)
    assert (names(world), names(world, SETS)) == ([], [])


def test_orphans_stay_when_asked_and_are_adopted(world: World) -> None:
    """By the next owner whose selector matches them, down to the pods."""
    world.create(DEPLOYMENTS, "w", workload(replicas=2))
    world.run(10)
    pods = names(world)
    (left,) = names(world, SETS)
    world.delete(DEPLOYMENTS, "w", propagation="Orphan")
    world.delete(SETS, left, propagation="Orphan")
    world.run(10)
    assert [one["metadata"].get("ownerReferences") for one in world.all("pods")] == [None, None]
    world.create(DEPLOYMENTS, "w", workload(replicas=2))
    world.run(10)
    assert names(world) == pods


def test_an_orphaned_set_goes_to_the_next_deployment(world: World) -> None:
    """Of the same selector."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run(10)
    world.delete(DEPLOYMENTS, "w", propagation="Orphan")
    again = world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run(10)
    (adopted,) = world.all(SETS)
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


def test_a_bare_pod_that_fits_is_adopted(world: World) -> None:
    """Whether it was there before the set or comes later; one too many is deleted."""
    world.create("pods", "early", template()["spec"], metadata={"labels": LABELS})
    world.run(5)
    world.create(SETS, "w", workload(replicas=1))
    world.run(5)
    assert names(world) == ["early"]
    world.create("pods", "late", template()["spec"], metadata={"labels": LABELS})
    world.run(5)
    assert names(world) == ["early"]


def test_a_pod_whose_labels_change_is_let_go(world: World) -> None:
    """It stays, for somebody to look at, and another takes its place."""
    world.create(SETS, "w", workload(replicas=1))
    world.run(5)
    (name,) = names(world)
    world.update("pods", name, lambda one: one["metadata"].update(labels={"app": "debug"}))
    world.run(5)
    assert "ownerReferences" not in world.get("pods", name)["metadata"]
    assert len(world.pods(**LABELS)) == 1


def test_foreground_deletion_waits_for_dependents(world: World) -> None:
    """The owner goes last, all the way up."""
    gone: list[str] = []

    def note(change: Change) -> None:
        if change.type == "DELETED":
            gone.append(change.record.name)

    world.create(DEPLOYMENTS, "w", workload(replicas=2))
    world.run(10)
    pods, (owner,) = names(world), names(world, SETS)
    for storage in ("pods", SETS, DEPLOYMENTS):
        world.watch(storage, note)
    world.delete(DEPLOYMENTS, "w", propagation="Foreground")
    world.run(10)
    assert (sorted(gone[:2]), gone[2:]) == (pods, [owner, "w"])


def test_an_object_whose_owner_never_was_is_collected(world: World) -> None:
    """Unless the owner's kind is not served here, since then nobody can know."""
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "never"}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "never"}
    world.create("configmaps", "kept", metadata={"ownerReferences": [unknown]})
    world.create("configmaps", "lost", metadata={"ownerReferences": [gone]})
    world.run(1)
    assert names(world, "configmaps") == ["kept", "kube-root-ca.crt"]


def test_one_owner_that_is_left_is_enough(world: World) -> None:
    """Only the last takes it along."""
    owners = [world.create("secrets", name) for name in ("a", "b")]
    references = [
        {"apiVersion": "v1", "kind": "Secret", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
        for one in owners
    ]
    world.create("configmaps", "m", metadata={"ownerReferences": references})
    world.delete("secrets", "a")
    world.run(1)
    assert [one["name"] for one in world.get("configmaps", "m")["metadata"]["ownerReferences"]] == ["b"]
    world.delete("secrets", "b")
    world.run(1)
    assert world.find("configmaps", "m") is None


def test_an_owner_that_controls_nothing_keeps_what_it_owns(world: World) -> None:
    """A pod stays when its controller waits for its dependents, and the other owner does not count it as its own."""
    world.create(SETS, "going", workload(replicas=2))
    spec = workload(replicas=0)
    spec["selector"]["matchLabels"] = spec["template"]["metadata"]["labels"] = {"other": "yes"}
    other = world.create(SETS, "staying", spec)
    world.run(5)
    kept, lost = names(world)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "staying", "uid": other["metadata"]["uid"]}
    world.update("pods", kept, lambda one: one["metadata"]["ownerReferences"].append(owner))
    world.delete(SETS, "going", propagation="Foreground")
    world.run(60)
    assert (names(world), names(world, SETS)) == ([kept], ["staying"])
    assert world.get("pods", kept)["metadata"]["ownerReferences"] == [owner]
    assert world.find("pods", lost) is None

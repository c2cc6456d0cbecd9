"""Owners and dependents: adoption of orphans, and garbage collection."""

from kubestow.apiserver.store.records import Change
from support.apiserver.world import LABELS, World, template, workload

SETS, DEPLOYMENTS = "replicasets.apps", "deployments.apps"


def names(world: World, storage: str = "pods") -> list[str]:
    """Return the sorted names of objects."""
    return sorted(one["metadata"]["name"] for one in world.all(storage))


def test_deleting_an_owner_deletes_its_dependents(world: World) -> None:
    """In the background: Deployment, sets and pods."""
    world.create(DEPLOYMENTS, "w", workload(replicas=3))
    world.run(10)
    world.delete(DEPLOYMENTS, "w")
    world.run(10)
    assert (names(world), names(world, SETS)) == ([], [])


def test_orphans_are_kept_on_request_and_adopted(world: World) -> None:
    """By the next owner with a matching selector, including the pods."""
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


def test_an_orphaned_set_is_adopted_by_the_next_deployment(world: World) -> None:
    """Their selectors are equal."""
    world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run(10)
    world.delete(DEPLOYMENTS, "w", propagation="Orphan")
    again = world.create(DEPLOYMENTS, "w", workload(replicas=1))
    world.run(10)
    (adopted,) = world.all(SETS)
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


def test_a_matching_bare_pod_is_adopted(world: World) -> None:
    """Created before or after the set; a surplus one is deleted."""
    world.create("pods", "early", template()["spec"], metadata={"labels": LABELS})
    world.run(5)
    world.create(SETS, "w", workload(replicas=1))
    world.run(5)
    assert names(world) == ["early"]
    world.create("pods", "late", template()["spec"], metadata={"labels": LABELS})
    world.run(5)
    assert names(world) == ["early"]


def test_a_pod_whose_labels_change_is_released(world: World) -> None:
    """It continues to run for inspection, and is replaced."""
    world.create(SETS, "w", workload(replicas=1))
    world.run(5)
    (name,) = names(world)
    world.update("pods", name, lambda one: one["metadata"].update(labels={"app": "debug"}))
    world.run(5)
    assert "ownerReferences" not in world.get("pods", name)["metadata"]
    assert len(world.pods(**LABELS)) == 1


def test_foreground_deletion_waits_for_dependents(world: World) -> None:
    """The owner is removed last, on every level."""
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


def test_an_object_whose_owner_never_existed_is_collected(world: World) -> None:
    """Unless the owner's kind is not served here, so that it cannot be checked."""
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "never"}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "never"}
    world.create("configmaps", "kept", metadata={"ownerReferences": [unknown]})
    world.create("configmaps", "lost", metadata={"ownerReferences": [gone]})
    world.run(1)
    assert names(world, "configmaps") == ["kept", "kube-root-ca.crt"]


def test_one_remaining_owner_is_enough(world: World) -> None:
    """The object is deleted with the last one."""
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


def test_an_owner_that_is_no_controller_keeps_its_dependents(world: World) -> None:
    """A pod is kept while another owner than its controller, deleted in the foreground, remains."""
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

"""Default objects and deletion of namespaces, endpoints of Services, events, and the list of controllers."""

import pytest

from kubestow.apiserver.store.records import Change
from support.apiserver.world import LABELS, World, template, workload

SLICES = "endpointslices.discovery.k8s.io"


@pytest.mark.parametrize(("storage", "name"), [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")])
def test_every_namespace_has_its_default_objects(world: World, storage: str, name: str) -> None:
    """They are created again when deleted, and restored when changed."""
    world.create("namespaces", "x")
    world.run(1)
    for namespace in ("default", "kube-system", "x"):
        assert world.find(storage, name, namespace) is not None
    world.delete(storage, name)
    world.run(1)
    assert world.find(storage, name) is not None
    world.update("configmaps", "kube-root-ca.crt", lambda one: one.update(data={"ca.crt": "forged"}))
    world.run(1)
    assert world.get("configmaps", "kube-root-ca.crt")["data"] == {"ca.crt": "authority"}


def test_a_namespace_is_emptied_before_it_is_removed(world: World) -> None:
    """Terminating pods and finalizers delay it."""
    world.create("namespaces", "x")
    world.create("configmaps", "held", namespace="x", metadata={"finalizers": ["example.com/hold"]})
    world.create("replicasets.apps", "w", workload(replicas=300), namespace="x")
    world.run(10)
    assert len(world.all("pods", "x")) == 300
    world.delete("namespaces", "x")
    world.run(30)
    assert (world.all("pods", "x"), len(world.all("configmaps", "x"))) == ([], 1)
    conditions = {one["type"]: (one["status"], one["message"]) for one in world.status("namespaces", "x")["conditions"]}
    remaining = "Some resources are remaining: configmaps. has 1 resource instances"
    assert conditions["NamespaceContentRemaining"] == ("True", remaining)
    held = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    assert conditions["NamespaceFinalizersRemaining"] == ("True", held)
    assert conditions["NamespaceDeletionContentFailure"][0] == "False"
    record = world.store.get("configmaps", "x", "held")
    assert record is not None
    free = record.object()
    del free["metadata"]["finalizers"]
    world.store.delete("configmaps", world.store.put("configmaps", free))
    world.run(5)
    assert world.find("namespaces", "x") is None
    assert world.store.collection("configmaps").by_namespace.get("x") is None


def test_pods_are_deleted_before_the_rest_of_a_namespace(world: World) -> None:
    """Other objects are kept until the last pod is removed."""
    world.create("namespaces", "x")
    world.create("pods", "p", workload()["template"]["spec"], namespace="x", metadata={"finalizers": ["a.b/c"]})
    world.create("configmaps", "c", namespace="x")
    world.run(5)
    world.delete("namespaces", "x")
    world.run(60)
    assert world.find("configmaps", "c", "x") is not None
    world.update("pods", "p", lambda one: one["metadata"].pop("finalizers"), namespace="x")
    world.run(5)
    assert world.find("namespaces", "x") is None


def addresses(world: World) -> dict[str, bool]:
    """Return the pods behind the Service, and whether they are ready."""
    found = [end for piece in world.all(SLICES) for end in piece.get("endpoints", ())]
    return {one["targetRef"]["name"]: one["conditions"]["ready"] for one in found if "targetRef" in one}


def test_a_service_leads_to_the_pods_it_selects(world: World) -> None:
    """Pods are created, become ready, change labels and are deleted."""
    world.create("services", "s", {"selector": LABELS, "ports": [{"port": 80, "targetPort": "web"}]})
    spec = workload(replicas=2)
    spec["template"]["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 8080}]
    world.create("replicasets.apps", "w", spec)
    world.run(10)
    pods = [one["metadata"]["name"] for one in world.pods()]
    assert addresses(world) == dict.fromkeys(pods, True)
    (piece,) = world.all(SLICES)
    assert piece["ports"] == [{"name": "", "protocol": "TCP", "port": 8080}]
    assert piece["metadata"]["labels"]["kubernetes.io/service-name"] == "s"
    world.update("pods", pods[0], lambda one: one["metadata"].update(labels={"app": "debug"}))
    world.run(10)
    assert pods[0] not in addresses(world)
    assert len(addresses(world)) == 2
    world.set("services", "s", selector={"app": "debug"})
    world.run(1)
    assert addresses(world) == {pods[0]: True}
    world.delete("services", "s")
    world.run(1)
    assert world.all(SLICES) == []


def test_pods_are_grouped_by_the_number_of_a_named_port(world: World) -> None:
    """One slice, and one subset of Endpoints, for each number."""
    world.create("services", "s", {"selector": LABELS, "ports": [{"port": 80, "targetPort": "web"}]})
    for number in (8080, 9090):
        spec = template()["spec"]
        spec["containers"][0]["ports"] = [{"name": "web", "containerPort": number}]
        world.create("pods", f"p-{number}", {**spec, "nodeName": "node-0"}, metadata={"labels": LABELS})
    world.run(10)
    slices = {one["ports"][0]["port"]: one["endpoints"][0]["targetRef"]["name"] for one in world.all(SLICES)}
    assert slices == {8080: "p-8080", 9090: "p-9090"}
    ports = [one["ports"][0]["port"] for one in world.get("endpoints", "s")["subsets"]]
    assert ports == [8080, 9090]
    world.delete(SLICES, world.all(SLICES)[0]["metadata"]["name"])
    world.run(1)
    assert len(world.all(SLICES)) == 2


def test_older_clients_find_endpoints(world: World) -> None:
    """Ready and other pods; deleted with the Service; those of other owners are not changed."""
    world.create("endpoints", "manual", subsets=[{"addresses": [{"ip": "10.1.1.1"}]}])
    world.create("services", "manual", {"ports": [{"port": 80}]})
    world.create("services", "s", {"selector": LABELS, "ports": [{"port": 80}]})
    world.run(1)
    assert world.get("endpoints", "s").get("subsets", []) == []
    spec = workload(replicas=2)
    spec["template"]["metadata"]["annotations"] = {"kubestow.dev/ready-seconds": "60"}
    world.create("replicasets.apps", "w", spec)
    world.run(30)
    (subset,) = world.get("endpoints", "s")["subsets"]
    assert (len(subset["notReadyAddresses"]), "addresses" in subset) == (2, False)
    world.run(60)
    (subset,) = world.get("endpoints", "s")["subsets"]
    assert {one["targetRef"]["name"] for one in subset["addresses"]} == set(addresses(world))
    assert subset["ports"] == [{"protocol": "TCP", "port": 80}]
    world.delete("services", "s")
    world.delete("services", "manual")
    world.run(1)
    assert [one["metadata"]["name"] for one in world.all("endpoints")] == ["manual"]


def test_endpoints_written_by_hand_are_mirrored(world: World) -> None:
    """While the Endpoints exist, and their Service has no selector."""
    world.create("services", "s", {"ports": [{"port": 80}]})
    subset = {"addresses": [{"ip": "10.1.2.3"}], "notReadyAddresses": [{"ip": "10.1.2.4"}], "ports": [{"port": 80}]}
    world.create("endpoints", "s", subsets=[subset])
    world.run(1)
    (piece,) = world.all(SLICES)
    assert [(one["addresses"][0], one["conditions"]["ready"]) for one in piece["endpoints"]] == [
        ("10.1.2.3", True),
        ("10.1.2.4", False),
    ]
    assert piece["metadata"]["labels"]["kubernetes.io/service-name"] == "s"
    world.update("endpoints", "s", lambda one: one["subsets"][0].update(addresses=[{"ip": "10.9.9.9"}]))
    world.run(1)
    (piece,) = world.all(SLICES)
    assert piece["endpoints"][0]["addresses"] == ["10.9.9.9"]
    world.delete("endpoints", "s")
    world.run(1)
    assert world.all(SLICES) == []


def test_many_pods_are_spread_over_slices(world: World) -> None:
    """A hundred for each slice; surplus slices are deleted."""
    world.create("services", "s", {"selector": LABELS, "ports": [{"port": 80}]})
    world.create("replicasets.apps", "w", workload(replicas=230))
    world.run(10)
    assert sorted(len(piece["endpoints"]) for piece in world.all(SLICES)) == [30, 100, 100]
    world.set("replicasets.apps", "w", replicas=10)
    world.run(10)
    assert [len(piece["endpoints"]) for piece in world.all(SLICES)] == [10]


def test_events_are_counted_and_limited(world: World) -> None:
    """Twenty-five for each object, then one every five minutes; repeated events are counted."""
    world.create("replicasets.apps", "w", workload(replicas=40))
    world.run(5)
    assert len(world.events("ReplicaSet")) == 25
    world.run(900)
    world.set("replicasets.apps", "w", replicas=50)
    world.run(5)
    assert len(world.events("ReplicaSet")) == 28


def test_the_same_seed_gives_the_same_cluster() -> None:
    """Including names and versions, so that simulations are repeatable."""

    def play(seed: int) -> list[tuple[str, str, bytes]]:
        world = World(seed=seed)
        seen: list[tuple[str, str, bytes]] = []

        def note(change: Change) -> None:
            seen.append((change.type, change.record.name, change.record.body))

        for storage in world.store.collections:
            world.watch(storage, note)
        world.create("deployments.apps", "w", workload(replicas=4))
        world.create("services", "s", {"selector": LABELS, "ports": [{"port": 80}]})
        world.run(10)
        world.set("deployments.apps", "w", template=workload("i:2")["template"])
        world.run(20)
        world.delete("deployments.apps", "w")
        world.run(20)
        return seen

    assert play(7) == play(7)
    assert play(7) != play(8)


@pytest.mark.parametrize(
    ("wanted", "pods", "account"),
    [("*", 2, True), ("none", 0, False), ("*,-replicaset-controller", 0, True), ("replicaset-controller", 2, False)],
)
def test_controllers_can_be_chosen(wanted: str, pods: int, account: bool) -> None:
    """With the names of kube-controller-manager."""
    world = World(wanted=wanted)
    world.create("replicasets.apps", "w", workload(replicas=2))
    world.run(5)
    assert len(world.all("pods")) == pods
    assert (world.find("serviceaccounts", "default") is not None) == account


def test_an_unknown_controller_is_named() -> None:
    """The message lists the known ones."""
    with pytest.raises(ValueError, match=r"'jobs' is not in the list of known controllers; use none, \* or some of "):
        World(wanted="*,-jobs")

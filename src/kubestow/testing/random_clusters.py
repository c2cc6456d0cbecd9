"""Random small clusters with various nodes and pods; the same seed produces the same cluster."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.state import Cluster
from kubestow.testing.builders import make_node, make_pod

MakeNode = Callable[[str, Random], Node]
MakePod = Callable[[str, Random], Pod]

_LABELS = {"disk": ("ssd", "hdd"), "pool": ("a", "b", "c"), "app": ("web", "db")}


def random_node(name: str, rng: Random) -> Node:
    """Return a node with random capacity, labels and taints; one in ten is cordoned."""
    return make_node(
        name,
        cpu=rng.choice(("1", "4", "16")),
        memory=rng.choice(("1Gi", "8Gi", "64Gi")),
        pods=rng.choice((1, 3, 110)),
        zone=rng.choice((None, "a", "b", "c")),
        labels=_some_labels(rng),
        taints=rng.choice(((), (), ("dedicated=x:NoSchedule",), ("old:PreferNoSchedule",))),
        unschedulable=rng.random() < 0.1,
        resources=rng.choice(({}, {"example.com/gpu": 2})),
    )


def random_pod(name: str, rng: Random) -> Pod:
    """Return a pod with random requests, labels and constraints."""
    return make_pod(
        name,
        namespace=rng.choice(("default", "other")),
        cpu=rng.choice((None, "100m", "1", "2500m")),
        memory=rng.choice((None, "100Mi", "2Gi")),
        priority=rng.choice((None, 0, 10, 1000)),
        labels=_some_labels(rng),
        node_selector=_some_labels(rng) if rng.random() < 0.2 else None,
        tolerations=rng.choice(((), ("dedicated",))),
        host_ports=rng.choice(((), (), (80,))),
        resources=rng.choice(({}, {}, {"example.com/gpu": 1})),
    )


def random_cluster(rng: Random, node: MakeNode = random_node, pod: MakePod = random_pod) -> Cluster:
    """Return a cluster of 1 to 12 nodes with up to 3 pods each."""
    cluster = Cluster()
    for number in range(rng.randint(1, 12)):
        name = f"n{number}"
        cluster.set_node(node(name, rng))
        for other in range(rng.randint(0, 3)):
            cluster.set_pod(_on(pod(f"{name}-{other}", rng), name))
    return cluster


def _some_labels(rng: Random) -> dict[str, str]:
    return {key: rng.choice(values) for key, values in _LABELS.items() if rng.random() < 0.5}


def _on(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, nodeName=node))

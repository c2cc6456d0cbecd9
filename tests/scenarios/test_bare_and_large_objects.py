"""Objects without any optional field, and very large objects: pods are placed nevertheless."""

from typing import Any

import pytest

from kubestow.api import codec
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.client import resources
from kubestow.testing import make_node, make_pod
from support.scenarios.start import Start

KINDS = {
    each.kind.__name__: each.kind
    for each in vars(resources).values()
    if isinstance(each, resources.Resource) and each.kind not in (Pod, Node)
}
LARGEST = 2**63 - 1


def _bare(kind: type[Any], name: str) -> Any:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return codec.convert(kind, {"metadata": metadata})


@pytest.mark.parametrize("name", KINDS)
def test_an_object_with_nothing_but_a_name(start: Start, name: str) -> None:
    """An object of every watched kind is added, changed and deleted, and pods are placed."""
    harness = start()
    bare = _bare(KINDS[name], "bare")
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(bare)
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    harness.cluster.update(bare)
    harness.cluster.add(make_pod("p2"))
    harness.run_until_idle()
    harness.cluster.delete(bare, 0)
    harness.cluster.add(make_pod("p3"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p1": "n1", "default/p2": "n1", "default/p3": "n1"}


def test_a_node_and_a_pod_with_nothing_but_names(start: Start) -> None:
    """A node without capacities has none; a pod without a scheduler's name is ignored."""
    harness = start()
    harness.cluster.add(_bare(Node, "bare"))
    harness.cluster.add(_bare(Pod, "bare"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.run_until_idle()
    assert harness.bindings == {}
    assert harness.place_of("p1") == "unschedulable"
    harness.cluster.add(make_node("n1"))
    harness.run_until_idle()
    assert harness.bindings["default/p1"] == "n1"


def _term(number: int) -> dict[str, Any]:
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": f"other-{number}"}}}


_LABELS = {f"label-{number}": "x" for number in range(10_000)}
_TERMS = [_term(number) for number in range(1000)]
_REQUIRED = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _TERMS}}
_WEIGHED = [{"weight": 100, "podAffinityTerm": term} for term in _TERMS]
_PREFERRED = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": _WEIGHED}}


@pytest.mark.parametrize(
    "much",
    [
        pytest.param({"labels": _LABELS}, id="10,000 labels"),
        pytest.param({"spec": {"affinity": _REQUIRED}}, id="1,000 required terms"),
        pytest.param({"spec": {"affinity": _PREFERRED}}, id="1,000 preferred terms"),
        pytest.param({"tolerations": [f"key-{number}" for number in range(10_000)]}, id="10,000 tolerations"),
    ],
)
def test_a_very_large_pod(start: Start, much: dict[str, Any]) -> None:
    """It is placed, and so are others, on nodes that have 10,000 labels themselves."""
    harness = start()
    for name in ("n1", "n2"):
        harness.cluster.add(make_node(name, labels=_LABELS | {"kubernetes.io/hostname": name}))
    harness.cluster.add(make_pod("much", **much))
    harness.cluster.add(make_pod("good"))
    harness.run_until_idle()
    assert harness.bindings.keys() == {"default/much", "default/good"}


@pytest.mark.parametrize("amount", [LARGEST, LARGEST - 1, 2**62])
def test_amounts_near_the_integer_limit(start: Start, amount: int) -> None:
    """A node may have that much, a pod may request all of it, and two pods together exceed the integer limit."""
    harness = start()
    harness.cluster.add(make_node("n1", memory=str(LARGEST)))
    harness.cluster.add(make_pod("first", memory=str(amount)))
    harness.run_until_idle()
    harness.cluster.add(make_pod("second", memory=str(amount)))
    harness.cluster.add(make_pod("third", memory=str(amount)))
    harness.run_until_idle()
    assert len(harness.bindings) == LARGEST // amount
    assert harness.bindings["default/first"] == "n1"
    assert "Insufficient memory" in harness.cluster.conditions("third")["PodScheduled"].message

"""NodePreferAvoidPods: nodes whose annotation avoids the pods of a controller."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.meta import OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.plugins.legacy.node_prefer_avoid_pods import ANNOTATION, NodePreferAvoidPods
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, make, scores


def avoiding(*controllers: tuple[str, str]) -> str:
    signatures = [{"podController": {"kind": kind, "uid": uid, "name": "x"}} for kind, uid in controllers]
    return json.dumps({"preferAvoidPods": [{"podSignature": signature, "reason": "x"} for signature in signatures]})


def annotated(name: str, text: str) -> Node:
    node = make_node(name)
    return replace(node, metadata=replace(node.metadata, annotations={ANNOTATION: text}))


def owned(kind: str, uid: str, *, controller: bool = True) -> Pod:
    pod = make_pod("p")
    owner = OwnerReference(kind=kind, uid=uid, name="any", controller=controller)
    return replace(pod, metadata=replace(pod.metadata, ownerReferences=(owner,)))


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (owned("ReplicaSet", "1"), [100, 0, 0]),
        (owned("ReplicationController", "1"), [100, 100, 0]),
        (owned("ReplicaSet", "2"), [100, 100, 100]),
        (owned("StatefulSet", "3"), [100, 100, 100]),
        (owned("ReplicaSet", "1", controller=False), [100, 100, 100]),
        (make_pod("p"), [100, 100, 100]),
    ],
)
def test_controllers_that_a_node_avoids(pod: Pod, wanted: list[int]) -> None:
    """ReplicaSets and ReplicationControllers, by kind and UID; their pods score 0 there."""
    cluster = cluster_of(
        make_node("plain"),
        annotated("one", avoiding(("ReplicaSet", "1"))),
        annotated("some", avoiding(("StatefulSet", "3"), ("ReplicationController", "1"), ("ReplicaSet", "1"))),
    )
    assert list((scores(make(NodePreferAvoidPods), cluster, pod) or {}).values()) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"preferAvoidPods": null}',
        '{"preferAvoidPods": [{}]}',
        '{"preferAvoidPods": [{"podSignature": {}}]}',
        '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": 1}}}]}',
    ],
)
def test_invalid_annotations_are_ignored(text: str) -> None:
    """They avoid no controller."""
    found: Any = scores(make(NodePreferAvoidPods), cluster_of(annotated("n", text)), owned("ReplicaSet", "1"))
    assert found == {"n": 100}

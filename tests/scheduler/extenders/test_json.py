"""The JSON of both directions: objects are sent as received from the API server, answers are decoded as in Go."""

import json
from typing import Any

import numpy as np
import pytest

from kubestow import config
from kubestow.api.codec import decode
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.whole_objects import WholeNode, WholePendingPod, WholePod
from kubestow.client.watchlines import Added, LineDecoder
from kubestow.config.configuration import Extender as ExtenderConfig
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.extenders.answers import AnswerDecoder, FilterResult, HostPriority, PreemptionResult
from kubestow.scheduler.extenders.extender import Call, Extender, ExtenderError
from kubestow.scheduler.extenders.messages import Messages, encode_received
from kubestow.scheduler.extenders.whole_kinds import whole_kinds
from kubestow.testing import make_node, make_pod
from support.scenarios.extending import HEAD

CALL = Call(Extender(0, ExtenderConfig(urlPrefix="http://x/a/")), "filter", ())


def manifest(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "d", "uid": "u", "managedFields": [{"manager": "x"}], "finalizers": ["f"]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"dnsPolicy": "Default", **spec}}


def test_objects_are_sent_as_received() -> None:
    """That includes unknown fields; fields that kube-scheduler drops are removed."""
    pod = decode(WholePod, json.dumps(manifest()).encode())
    metadata = {"name": "p", "namespace": "d", "uid": "u", "finalizers": ["f"]}
    assert json.loads(encode_received(pod)) == {"metadata": metadata, "spec": {"dnsPolicy": "Default"}}


def test_an_assumed_pod_is_sent_with_its_node() -> None:
    """The API server has not confirmed it yet."""
    pod = decode(WholePod, json.dumps(manifest()).encode())
    assert json.loads(encode_received(PodInfo(pod).placed_on("n1").pod))["spec"] == {
        "dnsPolicy": "Default",
        "nodeName": "n1",
    }


def test_objects_without_source_are_sent_as_decoded() -> None:
    """Simulations have such objects."""
    assert json.loads(encode_received(make_pod("p")))["metadata"]["name"] == "p"


def test_pods_with_a_node_need_not_be_kept_whole() -> None:
    """Most pods have a node; they are kept whole only if victims are sent whole."""
    pending, bound = (json.dumps(manifest(nodeName=name)).encode() for name in ("", "n1"))
    assert len(decode(WholePendingPod, pending).source)
    assert not len(decode(WholePendingPod, bound).source)
    assert len(decode(WholePod, bound).source)


def test_watches_keep_whole_objects() -> None:
    """A line of a watch is decoded to an object with its JSON."""
    line = json.dumps({"type": "ADDED", "object": manifest()}).encode() + b"\n"
    [event] = LineDecoder(WholePendingPod).feed(line)
    assert isinstance(event, Added)
    assert json.loads(bytes(event.object.source)) == manifest()


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ("bindVerb: b", {}),
        ("filterVerb: f, nodeCacheCapable: true", {Pod: WholePendingPod}),
        ("prioritizeVerb: p, weight: 1", {Pod: WholePendingPod, Node: WholeNode}),
        ("preemptVerb: p, nodeCacheCapable: true", {Pod: WholePendingPod}),
        ("preemptVerb: p", {Pod: WholePod}),
    ],
)
def test_only_what_is_sent_is_kept(fields: str, kinds: dict[type, type]) -> None:
    """Other kinds are not kept whole."""
    assert whole_kinds(config.load(f"{HEAD}extenders: [{{urlPrefix: 'http://a', {fields}}}]").extenders) == kinds


def test_a_node_is_encoded_once_per_version() -> None:
    """Lists of nodes are concatenated from cached JSON, and rebuilt when a node changes."""
    cluster = Cluster()
    for number in range(3):
        cluster.set_node(make_node(f"n{number}"))
    messages, rows, pod = Messages(cluster.nodes), np.arange(3), make_pod("p")
    first = messages.nodes_body(pod, rows, names_only=False)
    assert messages.nodes_body(pod, rows, names_only=False)[1] is first[1]
    encoded = [messages._node(row) for row in range(3)]
    cluster.set_node(make_node("n1", labels={"a": "b"}))
    second = json.loads(b"".join(messages.nodes_body(pod, rows, names_only=False)))
    assert second["Nodes"]["items"][1]["metadata"]["labels"]["a"] == "b"
    assert [messages._node(row) is known for row, known in enumerate(encoded)] == [True, False, True]


@pytest.mark.parametrize(
    "text",
    [
        '{"NodeNames": ["a"], "FailedNodes": {"Error": "x"}}',
        '{"nodenames": ["a"], "failedNodes": {"Error": "x"}, "nodes": null, "error": null, "whatever": 1}',
        '{"NODENAMES": ["a"], "FAILEDNODES": {"Error": "x"}}',
    ],
)
def test_names_of_fields_in_any_case(text: str) -> None:
    """Decoding is that of Go; names of nodes stay as they are."""
    result = AnswerDecoder(FilterResult).decode(CALL, text.encode())
    assert result == FilterResult(NodeNames=["a"], FailedNodes={"Error": "x"})


def test_nodes_in_any_case() -> None:
    """That applies to nested objects, too."""
    result = AnswerDecoder(FilterResult).decode(CALL, b'{"nodes": {"Items": [{"metadata": {"Name": "a"}}]}}')
    assert result.kept(names_only=True) == ["a"]
    assert AnswerDecoder(list[HostPriority]).decode(CALL, b'[{"host": "a", "score": 3}]') == [HostPriority("a", 3)]
    victims = b'{"nodeNameToMetaVictims": {"N": {"pods": [{"uid": "u"}], "numPDBViolations": 1}}}'
    [(name, found)] = AnswerDecoder(PreemptionResult).decode(CALL, victims).NodeNameToMetaVictims.items()
    assert (name, found.Pods[0].UID, found.NumPDBViolations) == ("N", "u", 1)


@pytest.mark.parametrize("body", [b"", b"[", b"\xff", b"[" * 100_000, b'{"NodeNames": [1]}', b'{"Error": 5}'])
def test_invalid_answers(body: bytes) -> None:
    """The error names the URL."""
    with pytest.raises(ExtenderError, match=r'^Post "http://x/a/filter": the answer cannot be decoded: '):
        AnswerDecoder(FilterResult).decode(CALL, body)

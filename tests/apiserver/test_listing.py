"""Lists: selectors, pages, versions, forms."""

from collections.abc import Callable
from urllib.parse import quote

import pytest

from support.apiserver.running import Client, Running, pod

PODS = "/api/v1/namespaces/default/pods"


def names(body: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    """Return the names of the items of a list."""
    return [one["metadata"]["name"] for one in body["items"]]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["a", "b"]),
        ("tier==web,size!=big", ["b"]),
        ("size in (big,small)", ["a", "c"]),
        ("size notin (big)", ["b", "c"]),
        ("size", ["a", "c"]),
        ("!size", ["b"]),
        ("rank>1", ["c"]),
        ("rank<2", ["a"]),
        ("", ["a", "b", "c"]),
    ],
)
def test_label_selectors(client: Client, selector: str, expected: list[str]) -> None:
    """Equality, sets, existence and comparison."""
    labels = {
        "a": {"tier": "web", "size": "big", "rank": "1"},
        "b": {"tier": "web"},
        "c": {"tier": "db", "size": "small", "rank": "2"},
    }
    for name, one in labels.items():
        body = pod(name)
        body["metadata"]["labels"] = one
        client.create(PODS, body)
    assert names(client.get(f"{PODS}?labelSelector={quote(selector)}")) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a,metadata.namespace=default", ["b"]),
        ("spec.nodeName=n", ["b"]),
        ("spec.nodeName!=", ["b"]),
        ("status.phase=Pending", ["a", "b"]),
        ("status.phase!=Pending", []),
        ("spec.schedulerName=default-scheduler,spec.hostNetwork=false", ["a", "b"]),
    ],
)
def test_field_selectors(client: Client, selector: str, expected: list[str]) -> None:
    """The fields of pods that schedulers and kubectl use."""
    client.create(PODS, pod("a"))
    client.create(PODS, pod("b", nodeName="n"))
    assert names(client.get(f"{PODS}?fieldSelector={quote(selector)}")) == expected


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("labelSelector=a%20within%20(b)", "labelSelector"),
        ("fieldSelector=spec.colour%3Dred", "spec.colour"),
        ("limit=many", "limit"),
        ("resourceVersion=new", "resourceVersion"),
        ("continue=!!", "continue"),
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
    ],
)
def test_invalid_parameters_are_named(client: Client, query: str, word: str) -> None:
    """400 with the parameter in the message."""
    status, body = client.call("GET", f"{PODS}?{query}")
    assert status == 400
    assert word in body["message"]


def test_all_pages_show_the_same_version(client: Client) -> None:
    """Later pages have the state of the first one."""
    for name in "abcde":
        client.create(PODS, pod(name))
    first = client.get(f"{PODS}?limit=2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    client.delete(f"{PODS}/c")
    client.create(PODS, pod("cc"))
    second = client.get(f"{PODS}?limit=2&continue={first['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = client.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
    assert names(third) == ["e"]
    assert "continue" not in third["metadata"]


def test_an_expired_list_can_continue_in_the_current_state(start: Callable[..., Running]) -> None:
    """The 410 response has a token for the rest, which is again of one version."""
    client = start(retained_changes=4).client()
    for name in "abcdef":
        client.create(PODS, pod(name))
    token = client.get(f"{PODS}?limit=2")["metadata"]["continue"]
    for _ in range(5):
        client.create(PODS, pod("x"))
        client.delete(f"{PODS}/x")
    status, refused = client.call("GET", f"{PODS}?limit=2&continue={token}")
    assert (status, refused["reason"]) == (410, "Expired")
    second = client.get(f"{PODS}?limit=2&continue={refused['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    client.delete(f"{PODS}/e")
    third = client.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
    assert names(third) == ["e", "f"]
    assert third["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_an_exact_version_is_shown_while_it_is_retained(start: Callable[..., Running]) -> None:
    """resourceVersionMatch=Exact reads an older version; 410 if it is no longer retained."""
    client = start(retained_changes=4).client()
    version = client.create(PODS, pod("a"))["metadata"]["resourceVersion"]
    client.delete(f"{PODS}/a")
    exact = f"{PODS}?resourceVersion={version}&resourceVersionMatch=Exact"
    assert names(client.get(exact)) == ["a"]
    for name in "bcdefghij":
        client.create(PODS, pod(name))
    assert client.call("GET", exact)[0] == 410


def test_a_version_of_the_future_is_refused(client: Client) -> None:
    """As after the loss of the server's state."""
    status, body = client.call("GET", f"{PODS}?resourceVersion=4711")
    assert (status, body["reason"]) == (504, "Timeout")


def test_all_namespaces_in_order(client: Client) -> None:
    """By namespace, then by name."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "b"}})
    client.create("/api/v1/namespaces/b/pods", pod("a"))
    client.create(PODS, pod("z"))
    assert names(client.get("/api/v1/pods")) == ["a", "z"]
    assert names(client.get("/api/v1/pods?fieldSelector=metadata.namespace%3Ddefault")) == ["z"]


def test_a_table_has_the_columns_of_kubectl(client: Client) -> None:
    """Pods: ready, status, restarts, age; more of them for -o wide."""
    client.create(PODS, pod("a", nodeName="n"))
    table = client.get(PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    columns = [(one["name"], one["priority"]) for one in table["columnDefinitions"]]
    assert columns[:5] == [("Name", 0), ("Ready", 0), ("Status", 0), ("Restarts", 0), ("Age", 0)]
    assert ("Node", 1) in columns
    row = dict(zip((name for name, _ in columns), table["rows"][0]["cells"], strict=True))
    assert row | {"Age": ""} == {
        "Name": "a", "Ready": "0/1", "Status": "Pending", "Restarts": "0", "Age": "", "IP": "<none>", "Node": "n",
        "Nominated Node": "<none>", "Readiness Gates": "<none>",
    }  # fmt: skip
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_a_list_of_metadata_only(client: Client) -> None:
    """A PartialObjectMetadataList."""
    client.create(PODS, pod("a"))
    listed = client.get(PODS, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


def test_a_client_that_prefers_protobuf_gets_json(client: Client) -> None:
    """As client-go accepts: protobuf first, then anything."""
    client.create(PODS, pod("a"))
    assert names(client.get(PODS, accept="application/vnd.kubernetes.protobuf, */*")) == ["a"]


def test_an_unsupported_format_is_not_acceptable(client: Client) -> None:
    """The 406 response lists the supported one."""
    status, body = client.call("GET", PODS, accept="application/vnd.kubernetes.protobuf")
    assert status == 406
    assert "application/json" in body["message"]


def test_events_are_found_by_their_source(client: Client) -> None:
    """The component of older events, the reporting controller of newer ones."""
    path = "/api/v1/namespaces/default/events"
    about = {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}
    client.create(path, {"metadata": {"name": "old"}, **about, "source": {"component": "kubelet"}})
    client.create(path, {"metadata": {"name": "new"}, **about, "reportingComponent": "kubelet"})
    client.create(path, {"metadata": {"name": "other"}, **about, "reportingComponent": "scheduler"})
    found = client.get(f"{path}?fieldSelector=source%3Dkubelet")["items"]
    assert sorted(one["metadata"]["name"] for one in found) == ["new", "old"]

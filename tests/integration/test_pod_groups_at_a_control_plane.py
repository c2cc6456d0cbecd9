"""Pod groups scheduled by a process at a control plane, including a kill while a group is bound."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.apiserver.rest.application import Application
from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request
from support.apiserver.running import Client, Running
from support.integration.cluster import PODS, node, pod
from support.integration.process import Process
from support.polling import until
from support.scenarios.gangs import GATES, TREE_GATES, features

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
COMPOSITE_GROUPS = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"
FLAGS = ("--leader-elect=false", "--feature-gates=" + ",".join(f"{gate}=true" for gate in GATES))
WORKERS = 12


def add_gang(client: Client, name: str, pods: int, **spec: Any) -> None:
    spec["schedulingPolicy"] = {"gang": {"minCount": pods}}
    client.create(GROUPS, {"metadata": {"name": name}, "spec": spec})
    for number in range(pods):
        client.create(PODS, pod(f"{name}{number}", cpu="1", schedulingGroup={"podGroupName": name}))


def bound(client: Client) -> int:
    return sum(bool(item["spec"].get("nodeName")) for item in client.get(PODS)["items"])


def conditions(client: Client, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{GROUPS}/{name}").get("status", {}).get("conditions", [])
    return found


def test_a_waiting_group_has_a_condition(plane: Running, start: Callable[..., Process]) -> None:
    """Its condition is written, and updated when it is placed."""
    client = plane.client()
    client.create("/api/v1/nodes", node("n0", cpu="2"))
    add_gang(client, "a", pods=4)
    scheduler = start(*FLAGS)
    until(lambda: conditions(client, "a"), scheduler.output)
    (refused,) = conditions(client, "a")
    assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")
    assert bound(client) == 0
    client.create("/api/v1/nodes", node("n1", cpu="2"))
    until(lambda: bound(client) == 4, scheduler.output)
    until(lambda: conditions(client, "a")[0]["status"] == "True", scheduler.output)
    (placed,) = conditions(client, "a")
    assert (placed["reason"], placed["message"]) == ("Scheduled", "")
    assert placed["lastTransitionTime"] >= refused["lastTransitionTime"]


@pytest.mark.control_plane(features=features(*TREE_GATES))
def test_a_tree_is_placed_as_a_whole(plane: Running, start: Callable[..., Process]) -> None:
    """Composite pod groups are watched; each pod group has a condition."""
    client = plane.client()
    reference = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    client.create(COMPOSITE_GROUPS, {"metadata": {"name": "top"}, "spec": policy | reference})
    client.create("/api/v1/nodes", node("n0", cpu="2"))
    for name in "ab":
        add_gang(client, name, 2, parentCompositePodGroupName="top", **reference)
    scheduler = start(FLAGS[0], f"{FLAGS[1]},CompositePodGroup=true")
    until(lambda: conditions(client, "b"), scheduler.output)
    assert bound(client) == 0
    client.create("/api/v1/nodes", node("n1", cpu="2"))
    until(lambda: bound(client) == 4, scheduler.output)
    until(lambda: {conditions(client, name)[0]["status"] for name in "ab"} == {"True"}, scheduler.output)


def test_killed_in_the_middle_of_binding_a_group(
    plane: Running, start: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next scheduler binds the rest of the group."""
    client = plane.client()
    for number in range(WORKERS):
        client.create("/api/v1/nodes", node(f"n{number}", cpu="1"))
    arrived: list[str] = []
    serve = Application.__call__

    def serve_the_first_half(application: Application, request: Request, connection: Connection) -> None:
        if request.path.endswith("/binding"):
            arrived.append(request.path)
        if len(arrived) <= WORKERS // 2 or request.path not in arrived:
            serve(application, request, connection)

    with monkeypatch.context() as halfway:
        halfway.setattr(Application, "__call__", serve_the_first_half)
        first = start(*FLAGS)
        add_gang(client, "a", WORKERS)
        # All of them: a request read later would be served otherwise.
        until(lambda: len(arrived) == WORKERS, first.output)
        until(lambda: bound(client) == WORKERS // 2, first.output)
        first.send(signal.SIGKILL)
        first.ended()
    assert bound(client) == WORKERS // 2
    second = start(*FLAGS)
    until(lambda: bound(client) == WORKERS, second.output)
    until(lambda: [one["status"] for one in conditions(client, "a")] == ["True"], second.output)
    nodes = [item["spec"]["nodeName"] for item in client.get(PODS)["items"]]
    assert len(set(nodes)) == WORKERS

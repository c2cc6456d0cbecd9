"""The screen of `kubestow up`, drawn from a cluster that is known."""

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from rich.console import Console

from kubestow.api import codec
from kubestow.api.meta import OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change, Record, encode
from kubestow.cli.up.keys import DOWN, ENTER, ESCAPE, UP, split_keys
from kubestow.cli.up.overview import ZONE, Overview
from kubestow.cli.up.screen import Head, View, render
from kubestow.insight.decisions.record import Record as Decision
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from support.insight.records import made

HEAD = Head(
    "https://127.0.0.1:6443",
    "http://127.0.0.1:8080/ui/#token=t",
    "/home/me/kubeconfig",
    ("kubectl get pods", "kubectl get nodes"),
)
LENGTHS = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}


class World:
    """A cluster without anything that runs."""

    def __init__(self) -> None:
        self.cluster, self.decisions = Cluster(), deque[Decision]()
        self.pods = SimpleNamespace(objects={}, subscribers=[])
        core = SimpleNamespace(cluster=self.cluster, queue=SimpleNamespace(lengths=lambda: dict(LENGTHS)))
        store = SimpleNamespace(collection=lambda _: self.pods)
        scheduler = SimpleNamespace(core=core, decisions=self.decisions)
        self.overview = Overview(cast("Any", store), cast("Any", scheduler))

    def add_node(self, name: str, zone: str, **spec: Any) -> None:
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        node = {
            "metadata": {"name": name, "labels": {ZONE: zone}},
            "spec": spec,
            "status": {"allocatable": allocatable},
        }
        self.cluster.set_node(codec.decode(Node, encode(node)))

    def add_pod(self, name: str, node: str, cpu: str) -> None:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        pod = {"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node, "containers": [container]}}
        self.cluster.set_pod(codec.decode(Pod, encode(pod)))

    def change(self, kind: str, phase: str, before: str | None = None) -> None:
        for notify in self.pods.subscribers:
            notify(Change(kind, _stored(phase), None if before is None else _stored(before)))


def _stored(phase: str) -> Record:
    obj = {"metadata": {"name": "a", "namespace": "default"}, "status": {"phase": phase}}
    return Record(BY_STORAGE["pods"], obj, 1, encode(obj))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def drawn(world: World) -> Callable[..., list[str]]:
    """Draws the screen; returns its lines."""

    def draw(width: int = 100, height: int = 30, warning: str = "", view: View | None = None) -> list[str]:
        console = Console(width=width, height=height, force_terminal=False)
        with console.capture() as captured:
            console.print(render(world.overview, HEAD, warning, console.size, view))
        return [line.rstrip() for line in captured.get().splitlines()]

    return draw


def test_nodes_are_shown_with_what_they_have_left(world: World, drawn: Callable[..., list[str]]) -> None:
    """One line a node: zone, state, requested of what there is."""
    world.add_node("n0", "east")
    world.add_node("n1", "west", unschedulable=True)
    world.add_node("n2", "west", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    world.add_pod("a", "n0", "4")
    lines = [" ".join(line.split()) for line in drawn()]
    assert "n0 east ready █████░░░░░ 4/8 ░░░░░░░░░░ 0/32Gi 1/110" in lines
    assert "n1 west cordoned ░░░░░░░░░░ 0/8 ░░░░░░░░░░ 0/32Gi 0/110" in lines
    assert "n2 west not ready ░░░░░░░░░░ 0/8 ░░░░░░░░░░ 0/32Gi 0/110" in lines


def test_nodes_are_in_the_order_of_their_numbers(world: World, drawn: Callable[..., list[str]]) -> None:
    """node-2 comes before node-10."""
    for name in ("node-10", "node-9", "node-2"):
        world.add_node(name, "a")
    lines = [line.split()[0] for line in drawn() if line.startswith("node-")]
    assert lines == ["node-2", "node-9", "node-10"]


def test_more_nodes_than_fit_are_shown_by_zone(world: World, drawn: Callable[..., list[str]]) -> None:
    """Zones add up what their nodes have."""
    for number in range(100):
        world.add_node(f"n{number}", "west" if number % 4 else "east")
    world.add_pod("a", "n1", "6")
    lines = [" ".join(line.split()) for line in drawn()]
    assert "east 25 ░░░░░░░░░░ 0/200 ░░░░░░░░░░ 0/800Gi 0/2750" in lines
    assert "west 75 █░░░░░░░░░ 6/600 ░░░░░░░░░░ 0/2400Gi 1/8250" in lines
    for number in range(50):
        world.add_node(f"more-{number}", f"zone-{number}")
    assert len(drawn()) <= 30
    assert any(line.startswith("and ") and line.endswith(" more") for line in drawn())


@pytest.mark.parametrize("height", [24, 30, 50])
def test_ten_nodes_and_some_decisions_fit_any_terminal(
    world: World, drawn: Callable[..., list[str]], height: int
) -> None:
    """Nodes one by one and the last decisions, with what to type as long as there is room."""
    for number in range(10):
        world.add_node(f"n{number}", "east")
    before = drawn(80, height)
    assert len(before) <= height
    assert any(line.startswith("n9 ") for line in before)
    assert "  kubectl get nodes" in before
    for number in range(5):
        world.decisions.appendleft(made(1.0, f"default/p{number}", f"u{number}", node="n1"))
    after = drawn(80, height)[:height]
    assert any(line.startswith("n9 ") for line in after)
    assert sum("→ n1" in line for line in after) >= 3
    assert any("export KUBECONFIG=/home/me/kubeconfig" in line for line in after)


def test_a_pod_rejected_again_for_the_same_reason_appears_once(world: World, drawn: Callable[..., list[str]]) -> None:
    """The newest first; the reason is there to read."""
    for message in ("1 Insufficient cpu", "2 Insufficient cpu", "2 Insufficient cpu"):
        world.decisions.appendleft(made(1.0, "default/a", "u", message=message))
    reasons = [line.split(None, 2)[2] for line in drawn() if "default/a" in line]
    assert reasons == ["2 Insufficient cpu", "1 Insufficient cpu"]


def reject(world: World, name: str, count: int, namespace: str = "shop") -> None:
    """Add rejections of the pods of a Deployment."""
    owner = OwnerReference("apps/v1", "ReplicaSet", f"{name}-5d", "u", True)
    for number in range(count):
        record = made(1.0, f"{namespace}/{name}-{number}", f"{name}{number}", message="2 Insufficient cpu")
        metadata = replace(record.info.pod.metadata, ownerReferences=(owner,), labels={"pod-template-hash": "5d"})
        record.info = PodInfo(replace(record.info.pod, metadata=metadata))
        world.decisions.appendleft(record)


def test_equal_rejections_of_an_owners_pods_are_one_line(world: World, drawn: Callable[..., list[str]]) -> None:
    """With the number of pods; pods by themselves, and other reasons, have lines of their own."""
    reject(world, "web", 20)
    for name in ("a", "b"):
        world.decisions.appendleft(made(1.0, f"shop/{name}", name, message="2 Insufficient cpu"))
    lines = [" ".join(line.split()[1:]) for line in drawn() if "Insufficient" in line]
    result = "2 Insufficient cpu"
    assert lines == [f"shop/b {result}", f"shop/a {result}", f"Deployment shop/web (20 pods) {result}"]


def test_pods_are_counted_by_phase_as_they_change(world: World, drawn: Callable[..., list[str]]) -> None:
    """Without looking at all of them again; every change is something new to see."""
    versions = [world.overview.version]
    for kind, phase, before in (
        ("ADDED", "Pending", None),
        ("ADDED", "Pending", None),
        ("MODIFIED", "Running", "Pending"),
        ("DELETED", "Pending", "Pending"),
    ):
        world.change(kind, phase, before)
        versions.append(world.overview.version)
    assert drawn()[0].endswith("pods: 1 Running")
    assert len(set(versions)) == 5


def test_a_warning_is_shown(drawn: Callable[..., list[str]]) -> None:
    """On one line under the title, however long it is."""
    lines = drawn(width=60, warning="something is odd " * 20)
    assert lines[1].startswith("something is odd")
    assert len(lines[1]) == 60


def test_a_pod_at_a_permit_wait_is_shown_as_waiting(world: World, drawn: Callable[..., list[str]]) -> None:
    """It may still be rejected there."""
    record = made(1.0, "default/a", "u", node="n1", evaluated=3, feasible=2)
    record.permits = {"Gate": 10.0}
    world.decisions.appendleft(record)
    (line,) = (line for line in drawn() if "default/a" in line)
    assert line.endswith("waits for Gate  to go to n1")


def results(lines: list[str]) -> list[str]:
    """Return the decisions without their times."""
    start = next(number for number, line in enumerate(lines) if line.startswith("DECIDED"))
    return [" ".join(line.split()[1:]) if line[:1].isdigit() else line.strip() for line in lines[start + 1 :]]


def test_keys_list_the_pods_of_a_row(world: World, drawn: Callable[..., list[str]]) -> None:
    """Enter lists them, and hides them again; the row stays selected when newer decisions come."""
    reject(world, "web", 12)
    reject(world, "api", 2)
    view = View(world.overview)
    keys = "KEYS  ↑↓ select  Enter pods  n namespace: all  o owner: all  Esc all"
    assert keys in drawn(view=view)
    assert keys not in drawn()
    for key in (DOWN, DOWN, ENTER):
        view.press(key)
    listed = results(drawn(view=view))
    assert listed[1].startswith("Deployment shop/web (12 pods)")
    assert listed[2:] == [*(f"shop/web-{number}" for number in range(11, 1, -1)), "and 2 more"]
    reject(world, "new", 1)
    assert results(drawn(view=view))[3] == "shop/web-11"
    view.press(ENTER)
    assert len(results(drawn(view=view))) == 3
    view.press(UP)
    view.press(ENTER)
    assert results(drawn(view=view))[2:4] == ["shop/api-1", "shop/api-0"]


def test_keys_limit_the_decisions_to_a_namespace_or_an_owner(world: World, drawn: Callable[..., list[str]]) -> None:
    reject(world, "web", 2)
    reject(world, "api", 2, "tools")
    world.decisions.appendleft(made(1.0, "tools/lone", "lone", node="n1"))
    view = View(world.overview)

    def names() -> list[str]:
        return [line.split(" (")[0].split(" →")[0] for line in results(drawn(view=view))]

    assert names() == ["tools/lone", "Deployment tools/api", "Deployment shop/web"]
    view.press("n")
    assert names() == ["Deployment shop/web"]
    view.press("n")
    assert names() == ["tools/lone", "Deployment tools/api"]
    view.press(DOWN)
    view.press("o")
    assert names() == ["Deployment tools/api"]
    assert any("n namespace: tools  o owner: Deployment tools/api" in line for line in drawn(view=view))
    view.press(ESCAPE)
    assert len(names()) == 3


def test_the_selected_row_is_visible(world: World, drawn: Callable[..., list[str]]) -> None:
    for number in range(60):
        world.decisions.appendleft(made(1.0, f"default/p{number}", f"u{number}", node="n1"))
    view = View(world.overview)
    for _ in range(50):
        view.press(DOWN)
    assert any("default/p9 " in line for line in drawn(view=view)[:30])


def test_keys_of_terminals_have_names() -> None:
    assert list(split_keys("\x1b[A\x1b[Bjo\r\x1b")) == [UP, DOWN, DOWN, "o", ENTER, ESCAPE]


def test_other_keys_of_terminals_are_not_escape() -> None:
    """Page down, Ctrl with an arrow, and F1 begin with the same character, but do not reset the view."""
    assert list(split_keys("\x1b[6~\x1b[1;5B\x1bOPj")) == ["\x1b[6~", "\x1b[1;5B", "\x1bOP", DOWN]


@pytest.mark.parametrize(("width", "height"), [(60, 15), (80, 24)])
def test_long_names_leave_room_for_the_reason(
    world: World, drawn: Callable[..., list[str]], width: int, height: int
) -> None:
    """Time, number of pods and reason are visible in small terminals, and the pods of the row after Enter."""
    world.add_node("n0", "east")
    message = "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No victims."
    world.decisions.appendleft(made(1.0, "shop/old", "old", message=message))
    reject(world, "x" * 60, 2)
    view = View(world.overview)
    view.press(ENTER)
    lines = drawn(width, height, view=view)
    (row,) = (number for number, line in enumerate(lines) if "(2 pods)" in line)
    assert lines[row].endswith("x (2 pods)  2 Insufficient cpu")
    assert lines[row].count(":") == 2
    assert lines[row + 1].endswith("x-1")
    view.press(DOWN)
    assert any(
        line.split()[1:] == ["shop/old", "1", "Insufficient", "memory."] for line in drawn(width, height, view=view)
    )
    assert len(lines) <= height

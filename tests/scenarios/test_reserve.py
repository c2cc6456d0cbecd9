"""Reserve: plugins reserve resources for a pod in order; after a failure, all release them in reverse order."""

from typing import Any

import pytest

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import SKIP, Rejection, Skip, Wait, unschedulable
from kubestow.testing import make_node, make_pod
from support.scenarios.start import Start

LOG: list[str] = []


class Reserving:
    """Records its calls; its results depend on the pod's label with its name."""

    name = ""

    def __init__(self, args: Any, handle: Handle) -> None:
        LOG.clear()

    def requeue_on(self) -> list[Any]:
        return []

    def reserve(self, state: Any, pod: PodInfo, node: str) -> Rejection | None:
        LOG.append(f"{self.name} reserve")
        mood = pod.labels.get(self.name)
        if mood == "fails":
            raise RuntimeError("no idea")
        return unschedulable("sold out") if mood == "refuses" else None

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        LOG.append(f"{self.name} unreserve")
        if pod.labels.get(self.name) == "cannot-undo":
            raise RuntimeError("stuck")


class First(Reserving):
    name = "First"


class Second(Reserving):
    name = "Second"


class Third(Reserving):
    """Takes part in Permit and PreBind, too."""

    name = "Third"

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait | Rejection | None:
        moods: dict[str, Wait | Rejection] = {"waits": Wait(5.0), "forbids": unschedulable("forbidden")}
        return moods.get(pod.labels.get("permit", ""))

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool:
        if pod.labels.get("pre-bind") == "unsure":
            raise RuntimeError("who knows")
        return "pre-bind" in pod.labels

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> Rejection | None:
        if pod.labels["pre-bind"] == "fails":
            raise RuntimeError("no disk")
        return unschedulable("the disk is broken")


RESERVED = ["First reserve", "Second reserve", "Third reserve"]
UNDONE = ["Third unreserve", "Second unreserve", "First unreserve"]


@pytest.mark.parametrize(
    ("labels", "reserved", "note"),
    [
        ({"Second": "refuses"}, RESERVED[:2], "0/1 nodes are available: 1 sold out."),
        ({"Second": "fails"}, RESERVED[:2], 'running Reserve plugin "Second": no idea'),
        ({"First": "refuses", "Third": "cannot-undo"}, RESERVED[:1], "0/1 nodes are available: 1 sold out."),
        ({"permit": "forbids"}, RESERVED, "0/1 nodes are available: 1 forbidden."),
        (
            {"permit": "waits"},
            RESERVED,
            "0/1 nodes are available: 1 rejected due to timeout after waiting 5s at plugin Third.",
        ),
        ({"pre-bind": "refuses"}, RESERVED, "the disk is broken"),
        ({"pre-bind": "fails"}, RESERVED, 'running PreBind plugin "Third": no disk'),
        ({"pre-bind": "unsure"}, RESERVED, 'running PreBindPreFlight "Third": who knows'),
    ],
    ids=["refused", "failed", "undo-fails", "forbidden", "timed-out", "pre-bind-refused", "pre-bind-failed", "unsure"],
)
def test_everything_is_released_in_reverse_order(
    start: Start, labels: dict[str, str], reserved: list[str], note: str
) -> None:
    """All plugins are called, including those without a reservation, wherever it failed; the pod has a message."""
    harness = start(plugins=[First, Second, Third])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="1", labels=labels))
    harness.run_for(5.5 if "permit" in labels else 0.5)
    assert LOG[: len(reserved) + 3] == reserved + UNDONE
    assert harness.events.about("p1")[0].note.partition(" (/")[0] == note
    assert harness.core.cluster.pod_count == 0
    assert harness.place_of("p1") in ("unschedulable", "errorBackoff")


def test_nothing_is_released_after_a_success(start: Start) -> None:
    """Every plugin reserves once, in order."""
    harness = start(plugins=[First, Second, Third])
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.run_until_idle()
    assert LOG == RESERVED
    assert harness.cluster.node_of("p1") == "n1"


def test_a_rejection_in_pre_bind_is_retried_like_an_error(start: Start) -> None:
    """The pod is unschedulable, but no event is known that would help."""
    harness = start(plugins=[First, Second, Third])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="1", labels={"pre-bind": "refuses"}))
    harness.run_for(0.5)
    assert harness.cluster.conditions("p1")["PodScheduled"].reason == "Unschedulable"
    assert harness.place_of("p1") == "errorBackoff"
    harness.run_for(3.0)
    assert len(harness.attempts.about("p1")) == 2


def test_failures_without_effect_are_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """A plugin cannot undo its Reserve: the pod is retried nevertheless."""
    harness = start(plugins=[First, Second, Third])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="1", labels={"First": "refuses", "Third": "cannot-undo"}))
    harness.run_until_idle()
    assert r'err="running unreserve plugin \"Third\": stuck"' in caplog.text


class Stateful(Reserving):
    """Has nothing to do for pods without its label."""

    name = "Stateful"
    needs_state = True

    def pre_filter(self, pod: PodInfo) -> str | Skip:
        return pod.labels.get(self.name) or SKIP

    def pre_bind_needed(self, state: str, pod: PodInfo, node: str) -> bool:
        LOG.append(f"{self.name} needed")
        return False

    async def pre_bind(self, state: str, pod: PodInfo, node: str) -> Rejection | None:
        raise AssertionError("not needed")


@pytest.mark.parametrize(
    ("labels", "called"),
    [
        ({}, []),
        ({"Stateful": "yes"}, ["Stateful reserve", "Stateful needed"]),
        ({"Third": "refuses"}, []),
        ({"Stateful": "yes", "Third": "refuses"}, ["Stateful reserve", "Stateful unreserve"]),
    ],
    ids=["no-state", "state", "no-state-undone", "state-undone"],
)
def test_plugins_that_need_state_are_not_called_without(
    start: Start, labels: dict[str, str], called: list[str]
) -> None:
    """None of reserve, unreserve and pre_bind_needed is called."""
    harness = start(plugins=[Stateful, Third])
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="1", labels=labels))
    harness.run_for(0.5)
    assert [entry for entry in LOG if entry.startswith("Stateful")] == called


class Farewell:
    """Fails in PostBind."""

    name = "Farewell"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def post_bind(self, state: Any, pod: PodInfo, node: str) -> None:
        raise RuntimeError("too late")


def test_failures_after_the_binding_change_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """The pod is bound, and the failure is logged."""
    harness = start(plugins=[Farewell])
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p1": "n1"}
    assert r'err="running PostBind plugin \"Farewell\": too late"' in caplog.text

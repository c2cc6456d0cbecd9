"""A plugin that misbehaves costs the pods that it misbehaves for, and nobody else; the scheduler runs on."""

from collections.abc import Callable
from typing import Any

import pytest

from fewest_nodes import fewest_nodes
from kubestow.scheduler.framework.results import unschedulable
from kubestow.testing import SchedulerHarness, make_node, make_pod
from scenarios import hostile
from scenarios.conftest import Start
from scenarios.hostile import ANSWERS, ANYWHERE, CHANGES_POD, CHANGES_POD_INFO, FAILS_THE_POD, TARGET

Misbehaviour = Callable[..., Any]


def _cases(**methods: tuple[Misbehaviour, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("method", "misbehave"),
        [
            pytest.param(method, misbehave, id=f"{method}-{misbehave.__name__}")
            for method, ways in methods.items()
            for misbehave in ways
        ],
    )


BINDS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Hostile}]
    bind:
      disabled: [{name: DefaultBinder}]
"""
"""A configuration that leaves binding to the plugin."""


ONLY_FAST = {"passing_rows", "row_rejection", "row_score"}
"""Methods that are not asked every time: the pod fails when they are."""


def _crowd(harness: SchedulerHarness) -> None:
    """Nice pods and targets in turn, then more nice ones; two nodes are good, one is bad."""
    for name, labels in (("n0", {}), ("n1", {}), ("n2", {"bad": "yes"})):
        harness.cluster.add(make_node(name, cpu="32", labels=labels))
    for number in range(4):
        harness.cluster.add(make_pod(f"nice-{number}", cpu="100m"))
        harness.cluster.add(make_pod(f"target-{number}", cpu="100m", labels=TARGET))
    harness.run_for(3)
    for number in range(4, 6):
        harness.cluster.add(make_pod(f"nice-{number}", cpu="100m"))
    harness.run_for(3)


def _check_others(harness: SchedulerHarness) -> None:
    """All nice pods are on good nodes, and the scheduler still schedules."""
    nice = {pod: node for pod, node in harness.bindings.items() if pod.startswith("default/nice-")}
    assert len(nice) == 6
    assert set(nice.values()) <= {"n0", "n1"}
    requested = harness.core.cluster.nodes.requested[0]
    assert int(requested.sum()) == 100 * len(harness.bindings), "columns still add up"


def _targets() -> list[str]:
    return [f"target-{number}" for number in range(4)]


@_cases(**FAILS_THE_POD)
def test_the_pod_fails_and_nobody_else(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """It gets SchedulerError with a message that names the plugin; every other pod is scheduled."""
    configuration = BINDS if method == "bind" else None
    harness = start(configuration, plugins=[hostile.hostile(method, misbehave)])
    _crowd(harness)
    _check_others(harness)
    # Whether it came from a decision or from a binding, it is told in an event of the pod.
    notes = harness.events.notes("FailedScheduling")
    assert notes
    assert all('"Hostile"' in note for note in notes)
    if method not in ONLY_FAST:
        failed = [harness.cluster.conditions(name)["PodScheduled"] for name in _targets()]
        assert {condition.reason for condition in failed} == {"SchedulerError"}


@_cases(words=(*ANYWHERE, *ANSWERS))
def test_a_refusal_without_words_fails_the_pod(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """They are asked for when the pod fits nowhere."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    harness.cluster.add(make_pod("picky", node_selector={"bad": "yes"}, labels=TARGET))
    _crowd(harness)
    _check_others(harness)
    failed = harness.cluster.conditions("picky")["PodScheduled"]
    assert (failed.reason, '"Hostile"' in failed.message) == ("SchedulerError", True)


@_cases(pre_enqueue=(*ANYWHERE, *ANSWERS, *CHANGES_POD))
def test_a_pod_that_pre_enqueue_fails_for_is_held_back(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """It never enters the queue, and the queue knows who keeps it out and why."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    _crowd(harness)
    _check_others(harness)
    assert [harness.place_of(name) for name in _targets()] == ["gated"] * 4


@_cases(unreserve=(*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO), post_bind=(*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO))
def test_what_comes_too_late_to_matter_is_told(
    start: Start, method: str, misbehave: Misbehaviour, caplog: pytest.LogCaptureFixture
) -> None:
    """The pod is bound already, or on its way back to the queue."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    _crowd(harness)
    _check_others(harness)
    assert r"plugin \"Hostile\"" in caplog.text


@_cases(post_filter=(*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO))
def test_a_pod_that_fits_nowhere_is_told_who_failed_to_help(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """As kube-scheduler has it, the pod is unschedulable; the message goes on with the failure."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    harness.cluster.add(make_pod("big", cpu="1000", labels=TARGET))
    _crowd(harness)
    _check_others(harness)
    assert 'running PostFilter plugin "Hostile"' in harness.cluster.conditions("big")["PodScheduled"].message


@_cases(hint=(*ANYWHERE, *ANSWERS, *CHANGES_POD))
def test_a_hint_that_fails_lets_the_pod_try_again(
    start: Start, method: str, misbehave: Misbehaviour, caplog: pytest.LogCaptureFixture
) -> None:
    """Better once too often than never."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    harness.cluster.add(make_node("bad", labels={"bad": "yes"}))
    harness.cluster.add(make_pod("waits", cpu="100m", labels=TARGET))
    harness.run_until_idle()
    assert harness.place_of("waits") == "unschedulable"
    _crowd(harness)
    _check_others(harness)
    assert "default/waits" in harness.bindings
    assert 'plugin="Hostile"' in caplog.text


@pytest.mark.parametrize("method", [*FAILS_THE_POD, "pre_enqueue", "hint", "post_bind", "post_filter"])
def test_a_plugin_that_takes_its_time(start: Start, method: str) -> None:
    """Everybody waits for it, and is scheduled."""
    configuration = BINDS if method == "bind" else None
    harness = start(configuration, plugins=[hostile.hostile(method, hostile.blocks)])
    _crowd(harness)
    harness.run_until_idle()
    _check_others(harness)
    assert all(f"default/{name}" in harness.bindings for name in _targets())


@pytest.mark.parametrize("misbehave", [hostile.raises, hostile.exits])
@pytest.mark.parametrize("method", ["pre_filter", "sign", "join_states", "join_score_states"])
def test_looking_ahead_fails_nobody(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """Pods of many sizes are judged together: what goes wrong for one of them is its own business."""

    def join(self: Any, states: Any, rows: Any) -> Any:
        return self._act("join_states", True, False) or self._act("join_score_states", True, False)

    plugin = hostile.hostile(method, misbehave, join_states=join, join_score_states=join)
    harness = start(plugins=[plugin])
    for number in range(40):
        harness.cluster.add(make_node(f"n{number}", cpu="32"))
    for number in range(30):
        labels = TARGET if number % 7 == 6 else {}
        harness.cluster.add(make_pod(f"p{number}", cpu=f"{100 + number}m", labels=labels))
    with fewest_nodes(2):
        harness.run_for(3)
    fails = {f"default/p{number}" for number in range(6, 30, 7)} if not method.startswith("join") else set()
    assert set(harness.bindings) == {f"default/p{number}" for number in range(30)} - fails


def test_a_signature_that_cannot_be_hashed_fails_one_pod(start: Start) -> None:
    """The event names the plugin and its value, and other pods are scheduled."""

    class SignsLists:
        name = "SignsLists"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def sign(self, pod: Any) -> Any:
            return ["not hashable"] if pod.labels == TARGET else ""

        def filter(self, state: Any, pod: Any, node: Any) -> None:
            pass

    harness = start(plugins=[SignsLists])
    harness.cluster.add(make_node("n", cpu="32"))
    harness.cluster.add(make_pod("signed", labels=TARGET))
    harness.cluster.add(make_pod("other"))
    harness.run_for(3)
    assert set(harness.bindings) == {"default/other"}
    condition = harness.cluster.conditions("signed")["PodScheduled"]
    assert condition.reason == "SchedulerError"
    assert "SignsLists" in condition.message


def test_a_pod_that_makes_no_sense_fails_alone(start: Start) -> None:
    """One with a quantity that cannot be read is judged ahead like the others, and only it fails."""
    harness = start()
    for number in range(40):
        harness.cluster.add(make_node(f"n{number}", cpu="32"))
    for number in range(12):
        harness.cluster.add(make_pod(f"p{number}", cpu="lots" if number == 5 else f"{100 + number}m"))
    with fewest_nodes(2):
        harness.run_for(3)
    assert set(harness.bindings) == {f"default/p{number}" for number in range(12) if number != 5}
    assert harness.cluster.conditions("p5")["PodScheduled"].reason == "SchedulerError"


def test_pre_filter_runs_once_a_cycle(start: Start) -> None:
    """Also for a plugin that signs nothing, and refuses: counted once, called once."""
    calls: list[str] = []

    class Refuses:
        name = "Refuses"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def pre_filter(self, pod: Any) -> Any:
            calls.append(pod.name)
            return unschedulable("not today")

    harness = start(plugins=[Refuses])
    harness.cluster.add(make_node("n0"))
    for number in range(4):
        harness.cluster.add(make_pod(f"p{number}"))
    harness.run_until_idle()
    assert calls == [pod.removeprefix("default/") for pod, _ in harness.attempts.decisions]
    (hook,) = [hook for hook in harness.core.profiles["default-scheduler"].pre_filter if hook.name == "Refuses"]
    assert hook.evaluations == len(calls) >= 4

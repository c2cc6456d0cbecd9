"""A plugin that misbehaves fails only the pods that it misbehaves for; the scheduler continues."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.scheduler.framework.results import unschedulable
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.fewest_nodes import fewest_nodes
from support.scenarios import hostile
from support.scenarios.hostile import ANSWERS, ANYWHERE, CHANGES_POD, CHANGES_POD_INFO, FAILS_THE_POD, TARGET
from support.scenarios.start import Start

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
"""Methods that are not called every time: the pod fails when they are."""


def _crowd(harness: SchedulerHarness) -> None:
    """Add normal pods and targets in turn, then more normal ones; two nodes are good, one is bad."""
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
    """Check that all normal pods are on good nodes, and the scheduler still schedules."""
    nice = {pod: node for pod, node in harness.bindings.items() if pod.startswith("default/nice-")}
    assert len(nice) == 6
    assert set(nice.values()) <= {"n0", "n1"}
    requested = harness.core.cluster.nodes.requested[0]
    assert int(requested.sum()) == 100 * len(harness.bindings), "columns still add up"


def _targets() -> list[str]:
    return [f"target-{number}" for number in range(4)]


@_cases(**FAILS_THE_POD)
def test_only_the_target_fails(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """It gets SchedulerError with a message that names the plugin; every other pod is scheduled."""
    configuration = BINDS if method == "bind" else None
    harness = start(configuration, plugins=[hostile.hostile(method, misbehave)])
    _crowd(harness)
    _check_others(harness)
    # Both the failure of a decision and that of a binding are events of the pod.
    notes = harness.events.notes("FailedScheduling")
    assert notes
    assert all('"Hostile"' in note for note in notes)
    if method not in ONLY_FAST:
        failed = [harness.cluster.conditions(name)["PodScheduled"] for name in _targets()]
        assert {condition.reason for condition in failed} == {"SchedulerError"}


@_cases(words=(*ANYWHERE, *ANSWERS))
def test_a_rejection_without_a_message_fails_the_pod(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """Messages are requested when no node is feasible."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    harness.cluster.add(make_pod("picky", node_selector={"bad": "yes"}, labels=TARGET))
    _crowd(harness)
    _check_others(harness)
    failed = harness.cluster.conditions("picky")["PodScheduled"]
    assert (failed.reason, '"Hostile"' in failed.message) == ("SchedulerError", True)


@_cases(pre_enqueue=(*ANYWHERE, *ANSWERS, *CHANGES_POD))
def test_a_failing_pre_enqueue_gates_the_pod(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """The pod is not queued, and the queue stores the plugin and the reason."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    _crowd(harness)
    _check_others(harness)
    assert [harness.place_of(name) for name in _targets()] == ["gated"] * 4


@_cases(unreserve=(*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO), post_bind=(*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO))
def test_failures_without_effect_are_logged(
    start: Start, method: str, misbehave: Misbehaviour, caplog: pytest.LogCaptureFixture
) -> None:
    """The pod is bound already, or about to be requeued."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    _crowd(harness)
    _check_others(harness)
    assert r"plugin \"Hostile\"" in caplog.text


@_cases(post_filter=(*ANYWHERE, *ANSWERS, *CHANGES_POD_INFO))
def test_a_failing_post_filter_is_in_the_message(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """As in kube-scheduler, the pod is unschedulable; the failure is part of its message."""
    harness = start(plugins=[hostile.hostile(method, misbehave)])
    harness.cluster.add(make_pod("big", cpu="1000", labels=TARGET))
    _crowd(harness)
    _check_others(harness)
    assert 'running PostFilter plugin "Hostile"' in harness.cluster.conditions("big")["PodScheduled"].message


@_cases(hint=(*ANYWHERE, *ANSWERS, *CHANGES_POD))
def test_a_failing_hint_retries_the_pod(
    start: Start, method: str, misbehave: Misbehaviour, caplog: pytest.LogCaptureFixture
) -> None:
    """An unnecessary attempt is better than a stranded pod."""
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
def test_a_slow_plugin(start: Start, method: str) -> None:
    """All pods wait for it, and are scheduled."""
    configuration = BINDS if method == "bind" else None
    harness = start(configuration, plugins=[hostile.hostile(method, hostile.blocks)])
    _crowd(harness)
    harness.run_until_idle()
    _check_others(harness)
    assert all(f"default/{name}" in harness.bindings for name in _targets())


@pytest.mark.parametrize("misbehave", [hostile.raises, hostile.exits])
@pytest.mark.parametrize("method", ["pre_filter", "sign", "join_states", "join_score_states"])
def test_failures_while_prefetching_fail_no_pod(start: Start, method: str, misbehave: Misbehaviour) -> None:
    """Pods of many sizes are evaluated together: a failure for one of them does not affect the others."""

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


def test_an_invalid_pod_fails_alone(start: Start) -> None:
    """A pod with an invalid quantity is prefetched like the others, and only this pod fails."""
    harness = start()
    for number in range(40):
        harness.cluster.add(make_node(f"n{number}", cpu="32"))
    for number in range(12):
        harness.cluster.add(make_pod(f"p{number}", cpu="lots" if number == 5 else f"{100 + number}m"))
    with fewest_nodes(2):
        harness.run_for(3)
    assert set(harness.bindings) == {f"default/p{number}" for number in range(12) if number != 5}
    assert harness.cluster.conditions("p5")["PodScheduled"].reason == "SchedulerError"


def test_pre_filter_runs_once_per_cycle(start: Start) -> None:
    """A plugin without signatures that rejects the pod is called once and counted once, too."""
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

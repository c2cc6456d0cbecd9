"""The caller: every plugin call is counted and attributed, and timed in some of the cycles."""

import asyncio
import inspect
import json
from contextlib import nullcontext
from typing import Any

import pytest

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.framework.caller import Caller, status_of
from kubestow.scheduler.framework.detached import NoNominations
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.results import (
    SKIP,
    Code,
    PluginError,
    PostFilterResult,
    Wait,
    unresolvable,
    unschedulable,
)
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.node_name import NodeName
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing.builders import make_pod
from support.scheduler.troupe import Refuses, Scores, evaluation_of, nodes


class Counting:
    """A stopwatch that advances by one second at each call."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


class Answers:
    """Returns or raises the given answer."""

    name = "Answers"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def permit(self, state: Any, pod: PodInfo, node: str) -> Any:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    async def bind(self, pod: PodInfo, node: str) -> Any:
        return self.permit(None, pod, node)


def caller() -> tuple[Caller, SchedulerMetrics]:
    metrics = SchedulerMetrics()
    return Caller("troupe", metrics, Counting()), metrics


def hook(answer: Any) -> Hook:
    plugin = Answers(answer)
    return Hook(plugin, "permit")


POD = PodInfo(make_pod("p"))


def test_filters_and_scores_are_counted_per_node() -> None:
    """A filter counts the nodes that were not rejected before it; a score counts the feasible ones."""
    first = Refuses("First", {"n0": "no"})
    second = Refuses("Second", {"n1": "no"})
    evaluation = evaluation_of(nodes(4), first, second, Scores("Third", {}))
    evaluation.score(evaluation.filter())
    counted = {b.name: b.evaluations for b in (*evaluation.profile.filter, *evaluation.profile.score)}
    assert counted == {"First": 4, "Second": 3, "Third": 2}


def test_other_points_are_counted_per_call() -> None:
    """Two calls are two evaluations."""
    calls, _ = caller()
    permitting = hook(None)
    for _ in range(2):
        calls.call(permitting, None, POD, "n0")
    assert permitting.evaluations == 2


@pytest.mark.parametrize(("timing", "calls"), [(False, {}), (True, {("Permit", "Answers", "Success"): 1.0})])
def test_calls_are_timed_only_if_timing_is_on(timing: bool, calls: dict[Any, float]) -> None:
    """Most cycles are not timed."""
    call, metrics = caller()
    call.timing = timing
    call.call(hook(None), None, POD, "n0")
    observed = metrics.plugin_execution_seconds.read()
    assert {key: histogram.total for key, histogram in observed.items()} == calls


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (None, "Success"),
        (SKIP, "Skip"),
        (Wait(3.0), "Wait"),
        (unschedulable("no"), "Unschedulable"),
        (unresolvable("never"), "UnschedulableAndUnresolvable"),
        (PostFilterResult(Code.UNSCHEDULABLE), "Unschedulable"),
        (PostFilterResult(Code.SUCCESS), "Success"),
    ],
)
def test_the_status_of_an_answer(answer: Any, status: str) -> None:
    """The status has the label that metrics use."""
    assert status_of(answer).label == status


@pytest.mark.parametrize(("answer", "status"), [(None, "Success"), (KeyError("x"), "Error")])
def test_timed_calls_are_recorded_with_their_status(answer: Any, status: str) -> None:
    """Failed calls are recorded, too, synchronous or not."""
    call, metrics = caller()
    call.timing = True
    plugin = Answers(answer)
    permitting, binding = Hook(plugin, "permit"), Hook(plugin, "bind")
    with pytest.raises(PluginError) if status == "Error" else nullcontext():
        call.call(permitting, None, POD, "n0")
    with pytest.raises(PluginError) if status == "Error" else nullcontext():
        asyncio.run(call.call_async(binding, POD, "n0"))
    assert list(metrics.plugin_execution_seconds.read()) == [
        ("Permit", "Answers", status),
        ("Bind", "Answers", status),
    ]


@pytest.mark.parametrize("timing", [False, True])
def test_exceptions_are_attributed(timing: bool) -> None:
    """Every exception of a plugin is raised as an error that names plugin and point, with the cause."""
    call, _ = caller()
    call.timing = timing
    with pytest.raises(PluginError, match='running Permit plugin "Answers": no luck') as caught:
        call.call(hook(RuntimeError("no luck")), None, POD, "n0")
    assert (caught.value.plugin, caught.value.point) == ("Answers", "Permit")
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("error", "message"),
    [(KeyError("zone"), "KeyError('zone')"), (SystemExit(1), "SystemExit(1)"), (ValueError(), "ValueError()")],
)
def test_exceptions_with_short_messages_are_shown_with_their_type(error: BaseException, message: str) -> None:
    """A key, a number or an empty message alone does not describe the error."""
    call, _ = caller()
    with pytest.raises(PluginError) as caught:
        call.call(hook(error), None, POD, "n0")
    assert str(caught.value) == f'running Permit plugin "Answers": {message}'


def test_the_log_shows_the_line_that_raised(caplog: pytest.LogCaptureFixture) -> None:
    """It is the deepest line in the plugin's own file, not in a function it calls; built-in plugins have no line."""

    class Careless:
        name = "Careless"

        def permit(self, state: Any, pod: Any, node: str) -> None:
            json.loads("{")

    call, _ = caller()
    with pytest.raises(PluginError):
        call.call(Hook(Careless(), "permit"), None, POD, "n0")
    line = inspect.getsourcelines(Careless.permit)[1] + 1
    [message] = caplog.messages
    assert message.startswith("Plugin raised err=")
    assert message.endswith(f'plugin="Careless" extensionPoint="Permit" at="{__file__}:{line}"')
    caplog.clear()
    ours = Hook(NodeName(None, offline_handle(Cluster())), "filter_rows")
    with pytest.raises(PluginError):
        call.call(ours, None, None, None, None)
    assert caplog.messages == []


def test_an_attributed_error_stays_as_it_is() -> None:
    """An error that already names a plugin is not wrapped again."""
    call, _ = caller()
    with pytest.raises(PluginError, match=r'^running Filter plugin "Other": deep inside$'):
        call.call(hook(PluginError("Other", "Filter", "deep inside")), None, POD, "n0")


def test_companion_methods_are_attributed_too() -> None:
    """`normalize` is part of Score; when it fails, the plugin and the method are named."""

    class Fails(Scores):
        def normalize(self, state: Any, pod: Any, view: Any, rows: Any, scores: Any) -> Any:
            raise ZeroDivisionError("nothing to divide by")

    evaluation = evaluation_of(nodes(), Fails("Fails", {}))
    with pytest.raises(
        PluginError,
        match='running normalize plugin "Fails": nothing to divide by',
    ):
        evaluation.score(evaluation.filter())


def test_points_are_timed_as_a_whole() -> None:
    """Every point that runs is recorded with its status and the profile's name, also if a plugin fails."""
    metrics = SchedulerMetrics()
    evaluation = evaluation_of(nodes(), Refuses("A", {"n0": "no"}), Scores("S", {"n1": 1000}), metrics=metrics)
    cycles = SchedulingCycles(evaluation.cluster, NoNominations(), lambda best: int(best[0]))
    outcome = cycles.run(evaluation.profile, evaluation.pod)
    assert isinstance(outcome, Failed)
    assert 'running Score plugin "S"' in outcome.message
    assert list(metrics.extension_point_seconds.read()) == [
        ("PreFilter", "troupe", "Success"),
        ("Filter", "troupe", "Success"),
        ("PreScore", "troupe", "Success"),
        ("Score", "troupe", "Error"),
    ]

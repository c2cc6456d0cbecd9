"""Plugins poll values from outside of the cluster, and set timers."""

import asyncio
from typing import Any

import numpy as np
import pytest

from kubestow.plugin import (
    SKIP,
    Action,
    Filter,
    Handle,
    NodeRow,
    PodInfo,
    PolledValue,
    PreFilter,
    Registration,
    Reserve,
    Skip,
    on,
)
from kubestow.plugin.fast import IntArray, NodeView, Rows, ScoreRows, Signs
from kubestow.scheduler.background import Background, live_answers
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.framework.polling import NoHttp
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.simulator.in_memory.virtual_loop import VirtualLoop
from kubestow.simulator.simulation import Simulation
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.simulator.objects import nodes, pod


class TargetLoad(ScoreRows[None], Signs):
    """Prefers nodes with little measured load; signs pods, and does not think of sharing."""

    name = "TargetLoad"

    def __init__(self, args: None, handle: Handle) -> None:
        self._columns = handle.node_columns(dtype=float)
        self.load = handle.poll(self.fetch, interval=30, stale_after=120, on_update=self._update)

    async def fetch(self) -> dict[str, float]:
        raise AssertionError("there are no sockets in virtual time")

    def _update(self, load: dict[str, float]) -> None:
        self._columns.replace_all({node: {"load": percent} for node, percent in load.items()})

    def sign(self, pod: PodInfo) -> tuple[()]:
        return ()

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        load = self._columns.get("load", view, rows, default=100.0)
        if self.load.is_stale:
            return np.zeros(len(load), np.int64)
        return (100 - load).astype(np.int64)


class Allowed(Filter[None]):
    """Allows the nodes of a polled list."""

    name = "Allowed"

    def __init__(self, args: None, handle: Handle) -> None:
        self._nodes = handle.poll(self.fetch, interval=10, stale_after=60, simulate=self._simulate)
        self._handle = handle

    async def fetch(self) -> list[str]:
        return []

    def _simulate(self) -> list[str]:
        return sorted(self._handle.cluster.nodes.row_of)[:1]

    def requeue_on(self) -> list[Registration]:
        return [on(self._nodes, Action.UPDATE)]

    def filter(self, state: None, pod: PodInfo, node: NodeRow) -> str | None:
        return None if node.name in (self._nodes.value or ()) else "node is not allowed"


def loaded(harness: SchedulerHarness, name: str) -> str:
    harness.cluster.add(make_pod(name))
    harness.run_until_idle()
    return harness.cluster.node_of(name)


def test_equal_pods_follow_a_polled_value() -> None:
    """The framework adds the version of the value to the signature."""
    with SchedulerHarness(plugins=[TargetLoad]) as harness:
        for node in ("a", "b"):
            harness.cluster.add(make_node(node))
        harness.set_polled("TargetLoad", {"a": 0, "b": 100})
        assert [loaded(harness, f"p{number}") for number in range(3)] == ["a"] * 3
        harness.set_polled("TargetLoad", {"a": 100, "b": 0})
        assert [loaded(harness, f"q{number}") for number in range(3)] == ["b"] * 3


def test_a_value_is_stale_before_the_first_and_long_after_the_latest_answer() -> None:
    """A failure keeps the value until it is stale, and says why it failed."""
    made: list[TargetLoad] = []

    class Observed(TargetLoad):
        def __init__(self, args: None, handle: Handle) -> None:
            super().__init__(args, handle)
            made.append(self)

    with SchedulerHarness(plugins=[Observed]) as harness:
        (plugin,) = made
        assert plugin.load.is_stale
        harness.run_for(1)
        harness.set_polled("TargetLoad", {"a": 1})
        assert (plugin.load.is_stale, plugin.load.value, plugin.load.error) == (False, {"a": 1.0}, "")
        assert plugin.load.updated_at == harness.clock.now()
        harness.fail_poll("TargetLoad", "the server is on fire")
        harness.run_for(119)
        assert (plugin.load.is_stale, plugin.load.error) == (False, "the server is on fire")
        harness.run_for(2)
        assert (plugin.load.is_stale, plugin.load.value) == (True, {"a": 1.0})


def test_a_new_value_retries_the_pods_that_the_plugin_rejected() -> None:
    """A polled value is a source of events."""
    with SchedulerHarness(plugins=[Allowed]) as harness:
        harness.cluster.add(make_node("a"))
        harness.set_polled("Allowed", [])
        assert loaded(harness, "p") == ""
        harness.set_polled("Allowed", ["a"])
        harness.run_until_idle()
        assert harness.cluster.node_of("p") == "a"


def test_without_values_a_plugin_simulates_them() -> None:
    """The first simulated value knows the nodes that the cluster starts with."""
    with SchedulerHarness(plugins=[Allowed]) as harness:
        for node in ("b", "a"):
            harness.cluster.add(make_node(node))
        assert loaded(harness, "p") == "a"


def test_a_given_value_must_fit_the_result_of_the_function() -> None:
    """A value of the wrong type is a failed poll, not one that the plugin trips over."""
    with SchedulerHarness(plugins=[TargetLoad]) as harness:
        harness.set_polled("TargetLoad.fetch", {"a": "much"})
        (polled,) = harness.core.background.polled  # type: ignore[union-attr]
        problem = "the value does not fit the result of its function: Expected `float`, got `str` - at `$[...]`"
        assert polled.error == f"TargetLoad.fetch: {problem}"
        with pytest.raises(LookupError, match="no plugin polls Other"):
            harness.set_polled("Other", 1)


def test_a_simulation_uses_values_from_their_times_on_also_in_a_fork() -> None:
    """Recorded values apply from their times on; a fork starts with the one that applies."""
    polled = {"TargetLoad": [(0.0, {"node-0": 0, "node-1": 100}), (60.0, {"node-0": 100, "node-1": 0})]}
    with Simulation(plugins=(TargetLoad,), polled=polled) as simulation:
        simulation.add(*nodes(2), pod("p0"))
        simulation.settle()
        simulation.run_for(60)
        simulation.add(pod("p1"))
        simulation.settle()
        with simulation.fork() as fork:
            fork.add(pod("p2"))
            fork.settle()
            assert [fork.node_of(name) for name in ("p0", "p1", "p2")] == ["node-0", "node-1", "node-1"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"interval": 0, "stale_after": 1}, "interval must be a positive number of seconds, not 0"),
        (
            {"interval": 1, "stale_after": float("inf")},
            "stale_after must be a positive number of seconds, not inf",
        ),
    ],
)
def test_a_poll_needs_positive_times(settings: dict[str, Any], message: str) -> None:
    """The error names the plugin and the line."""

    class Wrong(Allowed):
        name = "Wrong"

        def __init__(self, args: None, handle: Handle) -> None:
            handle.poll(self.fetch, **settings)

    with pytest.raises(ProfileError, match=f"initializing plugin Wrong: poll: {message} .*test_polling.py"):
        SchedulerHarness(plugins=[Wrong])


class Delays(PreFilter[None], Reserve[None]):
    """Reserves nothing, and calls back later."""

    name = "Delays"
    called: list[tuple[float, str]] = []

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle

    def pre_filter(self, pod: PodInfo) -> Skip:
        if pod.name == "early":
            self._handle.call_later(1, print)
        return SKIP

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        self._handle.call_later(5, self._end, pod.name)
        self._handle.call_later(5, self._end, "cancelled").cancel()

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None: ...

    def _end(self, pod: str) -> None:
        self.called.append((self._handle.clock.now(), pod))
        raise LookupError("logged only")


def test_a_timer_calls_back_once_unless_cancelled() -> None:
    """An exception of the callback is logged."""
    Delays.called.clear()
    with SchedulerHarness(plugins=[Delays]) as harness:
        harness.cluster.add(make_node("a"))
        loaded(harness, "p")
        start = harness.clock.now()
        harness.run_for(60)
        assert Delays.called == [(start + 5, "p")]


def test_timers_and_polls_end_with_their_profile() -> None:
    """Nothing of a plugin runs after it was replaced."""
    Delays.called.clear()
    with SchedulerHarness(plugins=[Delays, TargetLoad]) as harness:
        harness.cluster.add(make_node("a"))
        loaded(harness, "p")
        (profile,) = harness.core.profiles.values()
        profile.close()
        assert harness.core.background is not None
        assert harness.core.background.polled == []
        harness.run_for(60)
        assert Delays.called == []


def test_a_timer_is_refused_while_a_pod_is_evaluated() -> None:
    """Evaluations also happen in dry runs."""
    with SchedulerHarness(plugins=[Delays]) as harness:
        harness.cluster.add(make_node("a"))
        harness.cluster.add(make_pod("early"))
        harness.run_for(1)
        condition = harness.cluster.conditions("early")["PodScheduled"]
        assert "call_later is called while a pod is evaluated" in condition.message, condition


class Source:
    """A server that answers after a time, in virtual time."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.calls, self.running = list(answers), list[float](), 0

    async def fetch(self) -> int:
        loop = asyncio.get_running_loop()
        assert self.running == 0, "never concurrently with itself"
        self.calls.append(loop.time())
        self.running += 1
        try:
            seconds, answer = self.answers.pop(0) if self.answers else (0.0, 0)
            await asyncio.sleep(seconds)
            if isinstance(answer, Exception):
                raise answer
            return int(answer)
        finally:
            self.running -= 1


def polling(
    source: Source, gate: Gate, events: list[tuple[Any, Any]]
) -> tuple[VirtualLoop, PolledValue[int], SchedulerMetrics, Background]:
    loop, metrics = VirtualLoop(), SchedulerMetrics()
    background = Background(
        loop=loop,
        answers=live_answers(metrics, lambda: 0.5),
        http=NoHttp(),
        clock=loop.clock,
        metrics=metrics,
        gate=gate,
        notify=lambda _event, old, new: events.append((old, new)),
    )
    polled = PolledValue("Mine", source.fetch, interval=10, stale_after=25)
    background.poll(polled)
    return loop, polled, metrics, background


def close(loop: VirtualLoop, background: Background) -> None:
    background.close()
    loop.run_for(0)
    loop.close()


def test_a_live_poll_repeats_at_its_interval_and_has_it_as_its_time_limit() -> None:
    """A slow answer delays the next attempt, which does not overlap with it."""
    source, events = Source((1, 7), (99, 8), (0, RuntimeError("broken")), (2, 9)), list[tuple[Any, Any]]()
    loop, polled, metrics, background = polling(source, Gate(), events)
    loop.run_for(5)
    assert (polled.value, polled.is_stale) == (7, False)
    loop.run_for(15.5)
    assert polled.error == "broken"
    loop.run_for(6)
    assert polled.is_stale
    loop.run_for(6)
    assert (polled.value, polled.is_stale, polled.error) == (9, False, "")
    assert source.calls == [0, 10, 20, 30]
    assert events == [(None, 7), (7, 7), (7, 9)]
    assert metrics.plugin_polls.read() == {("Mine", "success"): 2, ("Mine", "failure"): 2}
    assert metrics.plugin_poll_seconds.read()[("Mine",)].total == 1 + 10 + 0 + 2
    assert metrics.plugin_poll_age.read() == {("Mine",): 0.5}
    close(loop, background)


def test_a_value_does_not_change_within_a_cycle() -> None:
    """An answer that arrives while a cycle waits for an extender applies after it."""
    gate, events = Gate(), list[tuple[Any, Any]]()
    loop, _, _, background = polling(Source((1, 7)), gate, events)
    gate.close()
    loop.run_for(2)
    assert events == []
    gate.open()
    assert events == [(None, 7)]
    close(loop, background)

"""Moments: their contents, the state at each of them, and the length of the history."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import encode

from kubestow.insight.page import tables
from kubestow.insight.page.history import PageHistory, State
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.page_harness import PageHarness
from support.scenarios.stages import Slow, slow_bindings


def contents(state: State) -> dict[str, Any]:
    """Return all data of a state."""
    table = state.cluster.nodes
    names = [table.names[row] for row in tables.live_rows(table)]
    return {
        "cluster": tables.ClusterTable().of(state),
        "queue": {uid: encode(pod) for uid, pod in state.waiting.items()},
        "nodes": [tables.node(state, name) for name in names],
        "groups": tables.groups(state),
        "search": tables.search(state, "", ()),
    }


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["node", "pod", "big", "remove pod", "remove node", "label"]), st.integers(0, 5)),
    max_size=12,
)


def act(world: SchedulerHarness, present: set[str], action: str, number: int) -> None:
    """Apply an action; impossible actions are ignored."""
    cluster, name, pod = world.cluster, f"n{number}", f"p{number}"
    match action:
        case "node" if name not in present:
            cluster.add(make_node(name, cpu="2"))
            present.add(name)
        case "label" if name in present:
            cluster.update(make_node(name, cpu="4", labels={"l": "v"}))
        case "remove node" if name in present:
            cluster.delete(cluster.node(name))
            present.discard(name)
        case "pod" | "big" if pod not in present:
            cluster.add(make_pod(pod, cpu="1" if action == "pod" else "9"))
            present.add(pod)
        case "remove pod" if pod in present:
            cluster.delete(cluster.pod(pod), 0.5)
            present.discard(pod)
        case _:
            pass
    world.run_for(1.0)


@settings(max_examples=30)
@given(st.lists(ACTIONS, min_size=1, max_size=5))
def test_past_states_are_restored(turns: list[list[tuple[str, int]]]) -> None:
    """The state at each moment is the same as at its time, in any order of requests."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        seen: list[tuple[float, bytes]] = []
        present = set[str]()
        for turn in turns:
            for action, number in turn:
                act(world, present, action, number)
            world.run_for(20.0)
            assert page.make_moment() is not None
            seen.append((page.history.end, encode(contents(page.history.now))))
        for time, expected in [*reversed(seen), *seen]:
            state = page.history.at(time)
            assert state is not None
            assert encode(contents(state)) == expected


def test_an_idle_cluster_has_few_moments() -> None:
    """There is a moment every ten seconds."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1"))
        page = PageHarness(world)
        assert page.make_moment() is not None
        world.run_until_idle()
        assert page.make_moment() is not None
        world.run_for(5.0)
        assert page.make_moment() is None
        world.run_for(6.0)
        moment = page.make_moment()
        assert moment is not None
        assert moment.figures.seconds == pytest.approx(11.0, abs=0.1)


def test_figures_count_since_the_previous_moment() -> None:
    """They have attempts, bound pods, and waiting times."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        page.make_moment()
        world.cluster.add(make_node("n1", cpu="2"))
        for number in range(3):
            world.cluster.add(make_pod(f"p{number}", cpu="1"))
        world.run_until_idle()
        moment = page.make_moment()
        assert moment is not None
        figures = moment.figures
        assert (figures.attempts, figures.bound, figures.nodes, figures.pods) == (3, 2, 1, 2)
        assert (figures.pending["unschedulable"], figures.requested["cpu"]) == (1, 1.0)
        assert figures.wait["p99"] is not None


def test_time_in_plugins_is_without_waits() -> None:
    """Bindings that wait side by side add nothing; each moment has the time since the previous one."""
    with SchedulerHarness(plugins=[Slow], record_bytes=1 << 24) as world:
        slow_bindings(world)
        page = PageHarness(world)
        world.cluster.add(make_node("n1"))
        for number in range(3):
            world.cluster.add(make_pod(f"p{number}"))
        world.run_until_idle()
        for seconds in (0.5, 0.25):
            world.metrics.plugin_execution_seconds.observe(seconds, "Filter", "NodeName", "Success")
            world.cluster.add(make_pod(f"after-{seconds}", node_selector={"disk": "none"}))
            world.run_for(0.2)
            moment = page.make_moment()
            assert moment is not None
            assert moment.figures.plugins == {"NodeName": seconds}


def test_the_event_that_requeued_a_pod() -> None:
    """It comes with the plugin whose hint requested it, even if the next attempt fails."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1", cpu="1"))
        world.cluster.add(make_pod("one", cpu="4"))
        world.cluster.add(make_pod("two", cpu="4"))
        world.run_for(20.0)
        page = PageHarness(world)
        page.make_moment()
        assert {(row.attempts, row.event) for row in page.history.now.waiting.values()} == {(1, "")}
        world.cluster.update(make_node("n1", cpu="5"))
        world.run_for(20.0)
        page.make_moment()
        (row,) = page.history.now.waiting.values()
        assert (row.state, row.attempts) == ("unschedulable", 2)
        assert (row.event, row.hint) == ("NodeUpdateNodeAllocatable", "NodeResourcesFit")


def moved(history: PageHistory) -> list[float]:
    points: list[float] = history.points(0.0, float("inf"), 1000)["time"]
    return points


def make_moments(world: SchedulerHarness, page: PageHarness) -> None:
    """Make sixty moments, each with one more pod."""
    world.cluster.add(make_node("n1", cpu="100"))
    page.make_moment()
    for number in range(60):
        world.cluster.add(make_pod(f"p{number}", cpu="1"))
        world.run_for(1.0)
        page.make_moment()


def pods(state: State | None) -> int:
    assert state is not None
    return state.cluster.pod_count


def test_the_oldest_moments_are_dropped() -> None:
    """The remaining states are still correct."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world, limit=40_000)
        make_moments(world, page)
        history = page.history
        assert len(moved(history)) < 40
        assert history.at(history.end - 59.0) is None
        assert 0 < pods(history.at(history.begin)) < 60
        assert pods(history.now) == 60


def test_states_before_the_history_of_the_cluster_are_not_shown() -> None:
    """Figures are kept longer; the state that was shown last is dropped together with the changes since."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        make_moments(world, page)
        history, changes = page.history, page.archive.recorder.history
        first = history.begin
        assert (pods(history.at(first)), pods(history.at(first + 10.0))) == (0, 10)
        changes.drop_before(changes.revision // 2)
        assert history.at(first) is None
        assert 0 < pods(history.at(history.begin)) < 60
        assert moved(history)[0] == first < history.begin
        page.add_objects(world, make_pod("last"))
        changes.drop_before(changes.revision)
        assert history.begin == history.end
        assert (pods(history.at(history.begin)), history.at(history.begin - 1.0)) == (61, None)
        page.add_objects(world, make_pod("more"), make_pod("still more"))
        assert pods(history.at(history.begin)) == 61


def test_a_copy_at_a_dropped_revision_is_not_used() -> None:
    """A state is correct although the copy of the cluster was last at a revision that is dropped now."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        make_moments(world, page)
        history, changes = page.history, page.archive.recorder.history
        assert pods(history.at(history.begin)) == 0
        changes.drop_before(changes.revision - 20)
        begin = history.begin
        expected = 60 - round(history.end - begin)
        assert [pods(history.at(begin + later)) for later in (0.0, 2.0, 1.0)] == [expected, expected + 2, expected + 1]


def test_points_are_combined() -> None:
    """A long time has a limited number of points; the sum of counts is unchanged."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        page = PageHarness(world)
        world.cluster.add(make_node("n1", cpu="100"))
        for number in range(20):
            world.cluster.add(make_pod(f"p{number}"))
            world.run_for(1.0)
            page.make_moment()
        every, few = (page.history.points(0.0, float("inf"), most) for most in (100, 4))
        assert (len(every["time"]), len(few["time"])) == (20, 4)
        assert sum(every["bound"]) == sum(few["bound"]) == 20
        assert sum(few["seconds"]) == pytest.approx(sum(every["seconds"]))
        assert few["time"][-1] == every["time"][-1]

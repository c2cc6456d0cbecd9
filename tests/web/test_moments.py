"""Moments: what they hold, the state that goes with each of them, and how far back one can look."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import encode

from kubestow.insight.page import tables
from kubestow.insight.page.history import PageHistory, State
from kubestow.testing import SchedulerHarness, make_node, make_pod
from web.looking import Looking


def told(state: State) -> dict[str, Any]:
    """Everything of a state, to be compared."""
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


def act(world: SchedulerHarness, there: set[str], action: str, number: int) -> None:
    """One thing that happens; what makes no sense is left out."""
    cluster, name, pod = world.cluster, f"n{number}", f"p{number}"
    match action:
        case "node" if name not in there:
            cluster.add(make_node(name, cpu="2"))
            there.add(name)
        case "label" if name in there:
            cluster.update(make_node(name, cpu="4", labels={"l": "v"}))
        case "remove node" if name in there:
            cluster.delete(cluster.node(name))
            there.discard(name)
        case "pod" | "big" if pod not in there:
            cluster.add(make_pod(pod, cpu="1" if action == "pod" else "9"))
            there.add(pod)
        case "remove pod" if pod in there:
            cluster.delete(cluster.pod(pod), 0.5)
            there.discard(pod)
        case _:
            pass
    world.run_for(1.0)


@settings(max_examples=30)
@given(st.lists(ACTIONS, min_size=1, max_size=5))
def test_looking_back_shows_what_there_was(turns: list[list[tuple[str, int]]]) -> None:
    """Whatever happens between looks: everything is as it was at the time, backwards and forwards."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world)
        seen: list[tuple[float, bytes]] = []
        there = set[str]()
        for turn in turns:
            for action, number in turn:
                act(world, there, action, number)
            world.run_for(20.0)
            assert looking.look() is not None
            seen.append((looking.history.end, encode(told(looking.history.now))))
        for time, expected in [*reversed(seen), *seen]:
            state = looking.history.at(time)
            assert state is not None
            assert encode(told(state)) == expected


def test_nothing_new_is_told_seldom() -> None:
    """An idle cluster costs a moment every ten seconds."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1"))
        looking = Looking(world)
        assert looking.look() is not None
        world.run_until_idle()
        assert looking.look() is not None
        world.run_for(5.0)
        assert looking.look() is None
        world.run_for(6.0)
        moment = looking.look()
        assert moment is not None
        assert moment.figures.seconds == pytest.approx(11.0, abs=0.1)


def test_figures_count_what_happened_since() -> None:
    """Attempts, pods bound, and how long they waited."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world)
        looking.look()
        world.cluster.add(make_node("n1", cpu="2"))
        for number in range(3):
            world.cluster.add(make_pod(f"p{number}", cpu="1"))
        world.run_until_idle()
        moment = looking.look()
        assert moment is not None
        figures = moment.figures
        assert (figures.attempts, figures.bound, figures.nodes, figures.pods) == (3, 2, 1, 2)
        assert (figures.pending["unschedulable"], figures.requested["cpu"]) == (1, 1.0)
        assert figures.wait["p99"] is not None


def test_the_event_that_woke_a_pod_is_told() -> None:
    """With the plugin whose hint said that it may help, even if it did not."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1", cpu="1"))
        world.cluster.add(make_pod("one", cpu="4"))
        world.cluster.add(make_pod("two", cpu="4"))
        world.run_for(20.0)
        looking = Looking(world)
        looking.look()
        assert {(row.attempts, row.event) for row in looking.history.now.waiting.values()} == {(1, "")}
        world.cluster.update(make_node("n1", cpu="5"))
        world.run_for(20.0)
        looking.look()
        (row,) = looking.history.now.waiting.values()
        assert (row.state, row.attempts) == ("unschedulable", 2)
        assert (row.event, row.hint) == ("NodeUpdateNodeAllocatable", "NodeResourcesFit")


def moved(history: PageHistory) -> list[float]:
    points: list[float] = history.points(0.0, float("inf"), 1000)["time"]
    return points


def many_looks(world: SchedulerHarness, looking: Looking) -> None:
    """Sixty looks, a pod more at each."""
    world.cluster.add(make_node("n1", cpu="100"))
    looking.look()
    for number in range(60):
        world.cluster.add(make_pod(f"p{number}", cpu="1"))
        world.run_for(1.0)
        looking.look()


def pods(state: State | None) -> int:
    assert state is not None
    return state.cluster.pod_count


def test_the_ring_forgets_the_oldest() -> None:
    """What is left is still right."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world, limit=40_000)
        many_looks(world, looking)
        history = looking.history
        assert len(moved(history)) < 40
        assert history.at(history.end - 59.0) is None
        assert 0 < pods(history.at(history.begin)) < 60
        assert pods(history.now) == 60


def test_nothing_is_shown_of_times_that_the_cluster_has_forgotten() -> None:
    """Figures are kept longer; what was shown last is shown no more when the changes since are dropped."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world)
        many_looks(world, looking)
        history, changes = looking.history, looking.archive.recorder.history
        first = history.begin
        assert (pods(history.at(first)), pods(history.at(first + 10.0))) == (0, 10)
        changes.drop_before(changes.revision // 2)
        assert history.at(first) is None
        assert 0 < pods(history.at(history.begin)) < 60
        assert moved(history)[0] == first < history.begin
        looking.look_after(world, make_pod("last"))
        changes.drop_before(changes.revision)
        assert history.begin == history.end
        assert (pods(history.at(history.begin)), history.at(history.begin - 1.0)) == (61, None)
        looking.look_after(world, make_pod("more"), make_pod("still more"))
        assert pods(history.at(history.begin)) == 61


def test_a_past_that_was_left_behind_is_not_used() -> None:
    """A state is right although the copy of the cluster was last at a revision that is forgotten now."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world)
        many_looks(world, looking)
        history, changes = looking.history, looking.archive.recorder.history
        assert pods(history.at(history.begin)) == 0
        changes.drop_before(changes.revision - 20)
        begin = history.begin
        expected = 60 - round(history.end - begin)
        assert [pods(history.at(begin + later)) for later in (0.0, 2.0, 1.0)] == [expected, expected + 2, expected + 1]


def test_points_are_put_together() -> None:
    """So that a long time is as many points as fit a screen; nothing is lost of what is counted."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        looking = Looking(world)
        world.cluster.add(make_node("n1", cpu="100"))
        for number in range(20):
            world.cluster.add(make_pod(f"p{number}"))
            world.run_for(1.0)
            looking.look()
        every, few = (looking.history.points(0.0, float("inf"), most) for most in (100, 4))
        assert (len(every["time"]), len(few["time"])) == (20, 4)
        assert sum(every["bound"]) == sum(few["bound"]) == 20
        assert sum(few["seconds"]) == pytest.approx(sum(every["seconds"]))
        assert few["time"][-1] == every["time"][-1]

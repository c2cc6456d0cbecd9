"""Pods are placed where they would be without sharing, also by plugins that read data which changes between cycles."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.detached import FixedClock
from kubestow.testing import make_node, make_object
from support.fewest_nodes import fewest_nodes
from support.plugins.careless_plugins import CARELESS, Blocks, KeepsColumns, Limit, ReadsObjects, SumsObjects
from support.scheduler.random_clusters import NODES
from support.scheduler.stories import Schedule, SetNode, World, stories_of_equal_pods, stories_of_many_sizes


class SetLimit(NamedTuple):
    node: str
    value: int


class RemoveLimit(NamedTuple):
    node: str


class Serve(NamedTuple):
    problem: str


class Tick(NamedTuple):
    seconds: int


changes = st.one_of(
    st.builds(SetLimit, st.sampled_from(NODES), st.integers(0, 9)),
    st.builds(SetLimit, st.sampled_from(NODES), st.integers(0, 9)),
    st.builds(RemoveLimit, st.sampled_from(NODES)),
    st.builds(Serve, st.sampled_from(["", "", "gone"])),
    st.builds(Tick, st.integers(1, 50)),
)


class DataWorld(World):
    """A cluster whose plugins read objects and the time."""

    def __init__(self, plugins: Any, percentage: int, **settings: Any) -> None:
        self.clock = FixedClock()
        super().__init__("default", percentage, plugins=plugins, clock=self.clock, **settings)

    def happen(self, what: Any, name: str, to_schedule: PodInfo | None) -> Any:
        match what:
            case SetLimit(node, value):
                self.cluster.set_object(make_object(Limit, node, value=value))
            case RemoveLimit(node):
                self.cluster.remove_object(make_object(Limit, node))
            case Serve(problem):
                self.cluster.set_unreadable(Limit, problem)
            case Tick(seconds):
                self.clock.seconds += seconds
            case _:
                return super().happen(what, name, to_schedule)
        return None


def mixed(draw: st.DrawFn, story: list[Any]) -> list[Any]:
    """Insert changes of data between the events of a story."""
    found: list[Any] = []
    for what in story:
        found += draw(st.sampled_from([(), (), (changes,), (changes, changes)]).flatmap(lambda some: st.tuples(*some)))
        found.append(what)
    return found


@st.composite
def stories_with_data(draw: st.DrawFn) -> list[Any]:
    """Draw events of a cluster, and changes of data between them."""
    return mixed(draw, draw(stories_of_equal_pods()))


@st.composite
def stories_of_many_sizes_with_data(draw: st.DrawFn) -> list[Any]:
    """Draw the same with pods of which no two have the same requests."""
    return mixed(draw, draw(stories_of_many_sizes()))


def compare(plugins: Any, sample: tuple[int, int], story: list[Any]) -> None:
    """Apply events with and without sharing, and announce the pods that follow."""
    fewest, percentage = sample
    pods = [PodInfo(what.pod(f"p{i}")) if isinstance(what, Schedule) else None for i, what in enumerate(story)]
    coming: list[PodInfo] = []
    with fewest_nodes(fewest):
        sharing = DataWorld(plugins, percentage, sharing=True, upcoming=lambda limit: coming[:limit])
        alone = DataWorld(plugins, percentage, sharing=False)
        for number, what in enumerate(story):
            coming = [pod for pod in pods[number + 1 :] if pod is not None]
            expected = alone.happen(what, f"p{number}", pods[number])
            assert sharing.happen(what, f"p{number}", pods[number]) == expected


@pytest.mark.parametrize("plugin", CARELESS, ids=lambda plugin: plugin.name)
@given(sample=st.sampled_from([(100, 0), (2, 0)]), story=stories_with_data())
@settings(max_examples=20, deadline=None)
def test_decisions_are_the_same_whatever_a_plugin_forgets(plugin: Any, sample: tuple[int, int], story: Any) -> None:
    """Each plugin signs all pods equally, but reads data that changes."""
    compare([plugin], sample, story)


@given(
    plugins=st.lists(st.sampled_from(CARELESS), min_size=2, max_size=4, unique=True),
    sample=st.sampled_from([(100, 0), (2, 0), (1, 30)]),
    story=stories_with_data(),
)
@settings(max_examples=40, deadline=None)
def test_decisions_are_the_same_with_several_such_plugins(plugins: Any, sample: tuple[int, int], story: Any) -> None:
    """One that does not sign at the moment does not affect the others."""
    compare(plugins, sample, story)


@given(sample=st.sampled_from([(2, 0), (1, 30)]), story=stories_of_many_sizes_with_data())
@settings(max_examples=40, deadline=None)
def test_prefetched_results_are_not_used_after_a_change(sample: tuple[int, int], story: Any) -> None:
    """Results are computed for several pods in advance, from data that may change before their cycles."""
    compare([ReadsObjects, SumsObjects, KeepsColumns, Blocks], sample, story)


def test_pods_of_many_sizes_follow_a_change_between_them() -> None:
    """The same, where every batch of results becomes outdated before it is used up."""
    story: list[Any] = [SetNode(make_node(name, cpu=64)) for name in NODES]
    for number in range(40):
        story.append(Schedule("plain", 10 * number + 1, 0, "", False))
        if number % 3 == 2:
            story.append(SetLimit(NODES[number % 8], number))
    compare([SumsObjects], (1, 15), story)

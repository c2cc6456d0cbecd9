"""Hints are called once for equivalent waiting pods."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource, on

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
POD_UPDATE = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL)
MANY = 20


class RecordingHint:
    """A hint that is true for some priorities; records its calls."""

    def __init__(self, lets_in: Iterable[int] = ()) -> None:
        self._lets_in = set(lets_in)
        self.names: list[str] = []

    def __call__(self, waiting: Pod, _old: Any, _new: Any) -> bool:
        self.names.append(waiting.metadata.name)
        return waiting.spec.priority in self._lets_in


def registrations(hint: RecordingHint, *, alike: bool) -> Any:
    everything = (on(Resource.NODE, Action.ADD, hint, alike=alike), on(Resource.POD, Action.ALL, hint, alike=alike))
    return {"Fit": everything, "Ports": [on(Resource.NODE, Action.ADD)]}


def test_one_call_counts_for_all_equivalent_pods(make_kit: Any) -> None:
    """If the hint is false for one of many equivalent pods, it is not called for the others."""
    hint = RecordingHint()
    kit = make_kit(registrations(hint, alike=True))
    for number in range(MANY):
        kit.reject(f"p{number}", "Fit", priority=number % 2)
    kit.happens(NODE_ADD)
    assert len(hint.names) == 2
    assert len(kit.where()["unschedulable"]) == MANY


def test_pods_with_a_true_hint_of_another_plugin_are_moved(make_kit: Any) -> None:
    """A pod that several plugins rejected is moved if one of their hints is true."""
    kit = make_kit(registrations(RecordingHint(), alike=True))
    for number in range(MANY):
        kit.reject(f"p{number}", "Fit", *(["Ports"] if number % 2 else []))
    kit.happens(NODE_ADD)
    assert kit.where()["backoff"] == sorted(f"p{number}" for number in range(MANY) if number % 2)


def test_a_changed_pod_is_not_equivalent_any_more(make_kit: Any) -> None:
    """The hint is called for it separately from then on."""
    kit = make_kit({"Fit": [on(Resource.NODE, Action.ADD, RecordingHint([5]), alike=True)]})
    pods = [kit.reject(f"p{number}", "Fit").pod for number in range(MANY)]
    changed = replace(pods[3], spec=replace(pods[3].spec, priority=5))
    kit.queue.update(pods[3], changed)
    assert "p3" in kit.where()["unschedulable"]
    kit.happens(NODE_ADD)
    assert kit.where()["backoff"] == ["p3"]


@given(
    priorities=st.lists(st.integers(0, 3), max_size=40), lets_in=st.sets(st.integers(0, 3)), about=st.integers(0, 39)
)
def test_the_same_pods_move_as_with_a_call_per_pod(
    make_kit: Any, priorities: list[int], lets_in: set[int], about: int
) -> None:
    """One call for many pods changes nothing but the number of calls."""
    places = []
    for alike in (True, False):
        kit = make_kit(registrations(RecordingHint(lets_in), alike=alike))
        pods = [kit.reject(f"p{i}", "Fit", priority=priority).pod for i, priority in enumerate(priorities)]
        if about < len(pods):
            kit.happens(POD_UPDATE, pods[about], pods[about])
        places.append(kit.where())
        kit.happens(NODE_ADD)
        places.append(kit.where())
    assert places[:2] == places[2:]

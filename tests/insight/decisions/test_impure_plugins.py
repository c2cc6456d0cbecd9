"""Answers of plugins that cannot be derived are kept with the decision."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from kubestow.plugin import Handle, PodInfo, unschedulable
from kubestow.plugin.fast import FilterRows, IntArray, NodeView, PodsRead, Rejections, Rows, ScoreRows, Signs
from kubestow.testing import make_node, make_pod
from support.insight.records import archive_of, decisions, nodes_of, recorded


class Moody:
    """A plugin that rejects the nodes in `rejected`, and counts pods in its own state."""

    name = "Moody"
    rejected: tuple[str, ...] = ()

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_filter(self, pod: Any) -> Any:
        return {"more": 0}

    def with_changes(self, state: Any, pod: Any, changes: Any) -> Any:
        return {"more": state["more"] + len(changes)}

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        assert "more" in state
        return unschedulable("not today") if node.name in self.rejected else None


def test_preemption_with_a_plugin_that_has_a_state() -> None:
    """The plugin is not called again, and its state is missing, because only the plugin needs it."""
    with recorded(plugins=[Moody]) as world:
        Moody.rejected = ("n0",)
        for number in range(4):
            world.cluster.add(make_node(f"n{number}", cpu="1"))
            world.cluster.add(make_pod(f"small{number}", cpu="1", node=f"n{number}", priority=number))
        world.cluster.add(make_pod("important", cpu="1", priority=100))
        world.run_for(0.01)
        Moody.rejected = ("n1", "n2", "n3")
        decision = decisions(world, "important")[0]
    assert decision.nodesDropped == ""
    assert {name: result.rejected and result.rejected.plugin for name, result in nodes_of(decision).items()} == {
        "n0": "NodeResourcesFit",
        "n1": "NodeResourcesFit",
        "n2": "NodeResourcesFit",
        "n3": "NodeResourcesFit",
    }
    assert decision.preemption is not None
    assert (decision.preemption.plugin, decision.preemption.nominated) == ("DefaultPreemption", "n1")
    assert [victim.pod for victim in decision.preemption.victims] == ["default/small1"]
    assert sorted(candidate.node for candidate in decision.preemption.candidates) == ["n1", "n2", "n3"]


class Fickle(Moody):
    """A plugin that returns a different answer in every call about the same node."""

    name = "Fickle"
    asked = 0

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        Fickle.asked += 1
        return unschedulable("not now") if Fickle.asked % 5 == 0 else None


def test_a_derived_preemption_with_another_result_is_not_shown() -> None:
    """The recorded node and victims are shown instead."""
    with recorded(plugins=[Fickle]) as world:
        for number in range(4):
            world.cluster.add(make_node(f"n{number}", cpu="2"))
            for half in "ab":
                pod = make_pod(f"small{number}{half}", cpu="1", node=f"n{number}", priority=number)
                world.cluster.add(pod)
        for number in range(20):
            world.cluster.add(make_pod(f"important{number}", cpu="1", priority=100 + number))
            world.run_for(0.01)
        archive = world.decisions
        assert archive is not None
        made = 0
        for record in archive:
            decision = archive.decision(record)
            if record.failed is None or not record.failed.preempting_plugin or decision.nodesDropped:
                continue
            made += 1
            assert decision.preemption is not None
            assert decision.preemption.nominated == record.failed.nominated_node
            assert [one.pod for one in decision.preemption.victims] == [one.key for one in record.failed.victims]
        assert made > 0


class Counting(FilterRows[None], ScoreRows[None], Signs):
    """A plugin that keeps numbers of its own: it prefers the node with the most pods, and refuses a full one."""

    name = "Counting"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        self._columns = handle.node_columns()

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.namespace

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections:
        full = self._columns.get("pods", view, rows) >= 10
        return Rejections(full.astype(np.int64), lambda _: unschedulable("full"))

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        return self._columns.get("pods", view, rows)

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        self._columns.set(node, {"pods": self._columns.values_of(node).get("pods", 0) + 1})

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None:
        raise AssertionError


def test_equal_pods_have_the_answers_that_they_share() -> None:
    """The plugin is called for changed nodes only; what it answered before about the others is shown, too."""
    with recorded(plugins=[Counting]) as world:
        for number in range(5):
            world.cluster.add(make_node(f"n{number}", cpu="100"))
        for number in range(35):
            world.cluster.add(make_pod(f"p{number}", cpu="1", namespace=f"ns{number % 2}"))
        world.run_until_idle()
        counts: Counter[str] = Counter()
        for record in reversed(list(archive_of(world))):
            decision = archive_of(world).decision(record)
            scores = {name: (one.raw or {})["Counting"] for name, one in nodes_of(decision).items() if not one.rejected}
            assert scores == {f"n{number}": counts[f"n{number}"] for number in range(5) if counts[f"n{number}"] < 10}
            assert decision.chosen is not None
            counts[decision.chosen] += 1
    assert max(counts.values()) == 10

"""The files that `kubestow plugin new` writes."""

PLUGIN = '''"""{title}: pods run in the pool of nodes that they name."""

from dataclasses import dataclass

from kubestow.plugin import Action, Filter, Handle, NodeRow, PodInfo, Registration, Requeues, Resource, Score, on
from kubestow.plugin.fast import Signs


@dataclass
class {title}Args:
    """The arguments in pluginConfig."""

    label: str = "example.com/pool"


class {title}(Filter[None], Score[None], Requeues, Signs):
    """Rejects nodes of other pools; prefers nodes with few pods. The parameter is the type of the state: none here."""

    name = "{title}"

    def __init__(self, args: {title}Args, handle: Handle) -> None:
        self._label = args.label

    def requeue_on(self) -> list[Registration]:
        """Return the events that retry a pod that this plugin rejected."""
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]

    def sign(self, pod: PodInfo) -> str | None:
        """Return what the results depend on: pods that sign the same share results until a node changes."""
        return pod.labels.get(self._label)

    def filter(self, state: None, pod: PodInfo, node: NodeRow) -> str | None:
        """Return why the node is rejected, or None."""
        wanted = pod.labels.get(self._label)
        if wanted is None or node.labels.get(self._label) == wanted:
            return None
        return f"node is not in pool {{wanted}}"

    def score(self, state: None, pod: PodInfo, node: NodeRow) -> int:
        """Return the score of the node, from 0 to 100."""
        return max(0, 100 - len(node.pods))
'''

TEST = '''"""Tests of {title}: a scheduler with the plugin, in virtual time."""

from kubestow.testing import SchedulerHarness, make_node, make_pod

from {module} import {title}

POOL = "example.com/pool"


def test_pods_go_to_their_pool() -> None:
    with SchedulerHarness(plugins=[{title}]) as harness:
        harness.cluster.add(make_node("red", labels={{POOL: "red"}}))
        harness.cluster.add(make_node("blue", labels={{POOL: "blue"}}))
        harness.cluster.add(make_pod("p", labels={{POOL: "blue"}}))
        harness.run_until_idle()
        assert harness.bindings == {{"default/p": "blue"}}


def test_a_pod_waits_for_its_pool() -> None:
    with SchedulerHarness(plugins=[{title}]) as harness:
        harness.cluster.add(make_node("red", labels={{POOL: "red"}}))
        harness.cluster.add(make_pod("p", labels={{POOL: "blue"}}))
        harness.run_until_idle()
        assert "1 node is not in pool blue" in harness.cluster.conditions("p")["PodScheduled"].message
        harness.cluster.add(make_node("blue", labels={{POOL: "blue"}}))
        harness.run_until_idle()
        assert harness.bindings == {{"default/p": "blue"}}
'''

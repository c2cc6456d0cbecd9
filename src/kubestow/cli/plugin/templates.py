"""The files that `kubestow plugin new` writes."""

PLUGIN = '''"""{title}: say here what it does."""

from dataclasses import dataclass

from kubestow.plugin import Action, Resource, on


@dataclass
class {title}Args:
    """What pluginConfig may say."""

    label: str = "example.com/pool"


class {title}:
    name = "{title}"

    def __init__(self, args: {title}Args, handle):
        self.label = args.label

    def requeue_on(self):
        # What may change this plugin's mind about a pod that it refused.
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]

    def sign(self, pod):
        # All of the pod that filter and score look at: pods that sign the same share answers until a node changes.
        return pod.labels.get(self.label)

    def filter(self, state, pod, node):
        """Why the node will not do, or None."""
        wanted = pod.labels.get(self.label)
        if wanted is None or node.labels.get(self.label) == wanted:
            return None
        return f"node is not in pool {{wanted}}"

    def score(self, state, pod, node):
        """How good the node is, from 0 to 100."""
        return max(0, 100 - len(node.pods))
'''

TEST = '''"""Tests of {title}: the whole scheduler with the plugin in it, in virtual time."""

from kubestow.testing import SchedulerHarness, make_node, make_pod

from {module} import {title}

POOL = "example.com/pool"


def test_pods_go_to_their_pool():
    with SchedulerHarness(plugins=[{title}]) as harness:
        harness.cluster.add(make_node("red", labels={{POOL: "red"}}))
        harness.cluster.add(make_node("blue", labels={{POOL: "blue"}}))
        harness.cluster.add(make_pod("p", labels={{POOL: "blue"}}))
        harness.run_until_idle()
        assert harness.bindings == {{"default/p": "blue"}}


def test_a_pod_waits_for_its_pool():
    with SchedulerHarness(plugins=[{title}]) as harness:
        harness.cluster.add(make_node("red", labels={{POOL: "red"}}))
        harness.cluster.add(make_pod("p", labels={{POOL: "blue"}}))
        harness.run_until_idle()
        assert "1 node is not in pool blue" in harness.cluster.conditions("p")["PodScheduled"].message
        harness.cluster.add(make_node("blue", labels={{POOL: "blue"}}))
        harness.run_until_idle()
        assert harness.bindings == {{"default/p": "blue"}}
'''

"""Random clusters and groups: a group is placed completely or not at all, and runs are repeatable."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup, PodGroup, group_key
from kubestow.scheduler.cycle import pod_group
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group
from support.scenarios import consistency
from support.scenarios.gangs import GATES, TREE_GATES, features
from support.scenarios.group_story import Story

SEEDS = st.integers(0, 1_000_000)


def gangs(harness: SchedulerHarness) -> dict[str, int]:
    """Return minCount by the key of the group."""
    return {group.key: group.min_count for group in harness.cluster.all(PodGroup)}


def check_gangs(story: Story, deleted: set[str]) -> None:
    """Check that a gang whose pods all still exist has none on a node, or enough."""
    groups = story.harness.core.cluster.groups
    assert groups is not None
    for key, least in gangs(story.harness).items():
        scheduled = len(groups.members(key).scheduled)
        if key not in deleted:
            assert scheduled == 0 or scheduled >= least, f"{key} has {scheduled} of {least}"


def check_trees(story: Story, deleted: set[str]) -> None:
    """Check that a tree whose pods all still exist has none on a node, or enough groups at each level do."""
    groups = story.harness.core.cluster.groups
    assert groups is not None
    for root in story.harness.cluster.all(CompositePodGroup):
        if not root.parent_key and deleted.isdisjoint(leaf.key for leaf in groups.leaves(root)):
            assert not groups.scheduled(root) or groups.has_quorum(root, scheduled=True), root


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, gates=st.sampled_from([GATES, TREE_GATES]))
def test_all_or_nothing_at_any_time(seed: int, gates: tuple[str, ...]) -> None:
    """After any events, only a gang that has lost pods to other causes may have fewer than it needs."""
    story = Story(seed, gates)
    seen: dict[str, str] = {}
    with story.harness as harness:
        for number in range(13):
            if number < 12:
                story.step()
            else:
                harness.run_until_idle()
            seen |= {pod.key: group_key(pod) for pod in harness.cluster.all(Pod)}
            left = {pod.key for pod in harness.cluster.all(Pod)}
            deleted = {group for pod, group in seen.items() if pod not in left}
            check_gangs(story, deleted)
            check_trees(story, deleted)
            consistency.check(harness)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, gates=st.sampled_from([GATES, TREE_GATES]))
def test_a_group_that_fits_an_empty_cluster_is_not_starved(seed: int, gates: tuple[str, ...]) -> None:
    """After everything else is deleted it is placed, however many groups came before it."""
    story = Story(seed, gates)
    with story.harness as harness:
        for _ in range(6):
            story.step()
        room = sum(
            int(str(node.status.allocatable["cpu"])) for node in harness.cluster.all(type(harness.cluster.node("n1")))
        )
        harness.cluster.add(make_pod_group("wanted", room))
        for number in range(room):
            harness.cluster.add(make_pod(f"wanted-{number}", cpu="1", group="wanted"))
        harness.run_for(1.0)
        for pod in harness.cluster.all(Pod):
            if group_key(pod) != "default/wanted":
                harness.cluster.delete(pod, grace_seconds=0)
        harness.run_for(12.0)
        assert all(pod.spec.nodeName for pod in harness.cluster.all(Pod))


def result_of(seed: int, gates: tuple[str, ...] = GATES) -> tuple[Any, ...]:
    """Return the bindings of a run, and the conditions of all pods and groups."""
    story = Story(seed, gates)
    with story.harness as harness:
        for _ in range(8):
            story.step()
        harness.run_until_idle()
        said = {
            pod.key: (pod.spec.nodeName, [(one.reason, one.message) for one in pod.status.conditions])
            for pod in harness.cluster.all(Pod)
        }
        groups = {
            group.key: [one.message for one in group.status.conditions] for group in harness.cluster.all(PodGroup)
        }
        return said, groups, harness.bindings


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, gates=st.sampled_from([GATES, TREE_GATES]))
def test_runs_are_repeatable(seed: int, gates: tuple[str, ...]) -> None:
    """The same events at the same times have the same outcome."""
    assert result_of(seed, gates) == result_of(seed, gates)


def counted_and_tried(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[Any, ...]]]:
    """Return the outcome of one attempt of a group of equal pods, by counts and without."""
    found = []
    gates = GATES if seed % 3 else GATES[:1]
    for counts in (True, False):
        rng = random.Random(seed)
        with monkeypatch.context() as patch, SchedulerHarness(features=features(*gates)) as harness:
            if not counts:
                patch.setattr(pod_group, "count", lambda *_, **__: None)
            for number in range(rng.randint(1, 6)):
                taints = ["closed:NoSchedule"] if rng.random() < 0.2 else []
                labels = {"rack": f"r{rng.randrange(3)}", "disk": rng.choice(("ssd", "hdd"))}
                cpu, memory, most = rng.choice((1, 2, 4)), f"{rng.choice((1, 2, 8))}Gi", rng.choice((2, 110))
                node = make_node(f"n{number}", cpu=cpu, memory=memory, pods=most, labels=labels, taints=taints)
                harness.cluster.add(node)
            for number in range(rng.randint(0, 4)):
                harness.cluster.add(make_pod(f"p{number}", cpu="500m", memory="256Mi"))
            harness.run_until_idle()
            pods, topology = rng.randint(4, 12), rng.choice(("", "rack"))
            harness.cluster.add(make_pod_group("a", rng.randint(1, pods), topology_key=topology))
            priority = rng.choice((0, 0, 10))
            shape: dict[str, Any] = {"cpu": rng.choice(("500m", "1")), "memory": rng.choice(("512Mi", "1Gi"))}
            shape["priority"] = priority
            if rng.random() < 0.3:
                shape["node_selector"] = {"disk": "ssd"}
            for number in range(pods):
                harness.cluster.add(make_pod(f"a{number}", group="a", **shape))
            harness.run_for(0.5)
            members = [pod for pod in harness.cluster.all(Pod) if group_key(pod)]
            group = harness.cluster.get(PodGroup, "default/a")
            assert group is not None
            waiting = Counter(
                tuple((one.reason, one.message) for one in pod.status.conditions)
                for pod in members
                if not pod.spec.nodeName
            )
            bound = sum(bool(pod.spec.nodeName) for pod in members)
            found.append(
                [(bound,), tuple(sorted(waiting.items())), tuple(one.message for one in group.status.conditions)]
            )
    return found


@pytest.mark.parametrize("seed", range(150))
def test_counting_and_trying_have_the_same_outcome(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same number of pods is bound, and the others have the same messages."""
    counted, tried = counted_and_tried(seed, monkeypatch)
    assert counted == tried

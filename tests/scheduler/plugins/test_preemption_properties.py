"""Trying all nodes at once finds the same victims as trying them one by one, pod by pod."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import run_until_calls
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import Code
from kubestow.testing.builders import make_node, make_pod
from support.plugins.preemption_world import NOW, World
from support.settled import settled

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


class Victims(NamedTuple):
    """The victims on a node and their cost; smaller is better."""

    broken: int
    highest: int
    priorities: int
    number: int
    earliest: float
    names: tuple[str, ...] = ()


def importance(pod: PodInfo) -> tuple[int, float]:
    """Return a sort key, smaller for more important pods."""
    return (-pod.priority, pod_start_time(pod.pod, NOW))


def one_by_one(world: World, evaluation: Evaluation, allowed: dict[str, int]) -> dict[str, Victims]:
    """Return the victims by node: each pod is moved separately, in its own what-if view, with all filters."""
    pod, nodes = evaluation.pod, world.cluster.nodes
    assert evaluation.verdicts is not None
    found = {}
    for position, row in enumerate(evaluation.verdicts.rows.tolist()):
        rejected = evaluation.verdicts.rejection(position)
        assert rejected is not None
        lower = sorted((p for p in nodes.pods[row].values() if p.priority < pod.priority), key=importance)
        if rejected.code is not Code.UNSCHEDULABLE or not lower:
            continue
        expected = [other for other in world.nominator.nominated_on(nodes.names[row]) if other.priority >= pod.priority]

        def fits(gone: list[PodInfo], row: int = row, expected: list[PodInfo] = expected) -> bool:
            for added in (expected, []):
                view = what_if(nodes, [row])
                for other in added:
                    view.add_pod(0, other)
                for other in gone:
                    view.remove_pod(0, other)
                changes = [Change(other, row, True) for other in added] + [Change(other, row, False) for other in gone]
                if evaluation.refuses(evaluation.states_after(changes), view).rejection(0) is not None:
                    return False
            return True

        if not fits(lower):
            continue
        left, breaking = dict(allowed), []
        for other in lower:
            app = other.labels.get("app", "")
            if app in left:
                left[app] -= 1
                if left[app] < 0:
                    breaking.append(other)
        gone = list(lower)
        for other in breaking + [p for p in lower if p not in breaking]:
            gone.remove(other)
            if not fits(gone):
                gone.append(other)
        gone.sort(key=importance)
        found[nodes.names[row]] = Victims(
            broken=sum(p in breaking for p in gone),
            highest=gone[0].priority,
            priorities=sum(p.priority + 2**31 for p in gone),
            number=len(gone),
            earliest=-pod_start_time(gone[0].pod, NOW),
            names=tuple(p.name for p in gone),
        )
    return found


APPS = st.sampled_from(["web", "db", "none"])


@st.composite
def specs(draw: st.DrawFn) -> dict[str, object]:
    """Draw constraints of a pod on its neighbors."""
    chosen = draw(st.sampled_from(["", "", "anti", "spread"]))
    selector = {"matchLabels": {"app": draw(APPS)}}
    if chosen == "anti":
        term = {"labelSelector": selector, "topologyKey": draw(st.sampled_from([HOST, ZONE]))}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    if chosen == "spread":
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
        return {"topologySpreadConstraints": [constraint]}
    return {}


@st.composite
def pods(draw: st.DrawFn, name: str, priority: st.SearchStrategy[int]) -> Pod:
    """Draw a pod that may block others."""
    return make_pod(
        name,
        cpu=f"{draw(st.integers(1, 4)) * 500}m",
        memory=f"{draw(st.integers(1, 12))}Gi",
        priority=draw(priority),
        labels={"app": draw(APPS)},
        host_ports=draw(st.sampled_from([(), (), (80,)])),
        spec=draw(specs()),
        status={"phase": "Running", "startTime": f"1970-01-0{draw(st.integers(1, 3))}T00:00:00Z"},
    )


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_all_at_once_equals_one_by_one(data: st.DataObject) -> None:
    """The chosen node is one of the best, its victims are the same; without a candidate, none is found."""
    world = World(seed=data.draw(st.integers(0, 9)))
    count = data.draw(st.integers(1, 5))
    for n in range(count):
        world.cluster.set_node(make_node(f"n{n}", zone=f"z{n % 2}"))
    for i in range(data.draw(st.integers(0, 4 * count))):
        pod = data.draw(pods(f"p{i}", st.integers(0, 3)))
        world.run_as(pod, f"n{data.draw(st.integers(0, count - 1))}")
    for i in range(data.draw(st.integers(0, 2))):
        node = f"n{data.draw(st.integers(0, count - 1))}"
        world.nominator.nominate(data.draw(pods(f"nominated{i}", st.integers(1, 3))), node)
    allowed = data.draw(st.sampled_from([{"web": 0}, {"web": 1, "db": 0}, {"none": 0}, {}]))
    for app, disruptions in allowed.items():
        world.budget(app, disruptions, selector={"matchLabels": {"app": app}})
    pod = data.draw(pods("vip", st.integers(1, 3)))

    evaluation = Evaluation(world.profile, world.cluster, world.nominator, PodInfo(pod))
    if not evaluation.pre_filter() or len(evaluation.filter()):
        return
    result = settled(run_until_calls(run_post_filter(world.profile, evaluation, None)))
    candidates = one_by_one(world, evaluation, allowed)
    assert (result.code is Code.SUCCESS) == bool(candidates)
    if candidates:
        assert result.nominated_node is not None
        chosen = candidates[result.nominated_node]
        assert chosen[:5] == min(victims[:5] for victims in candidates.values())
        assert sorted(chosen.names) == sorted(victim.name for victim in result.victims)

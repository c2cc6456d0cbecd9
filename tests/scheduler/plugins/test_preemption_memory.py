"""Cached findings of preemption change neither victims nor messages."""

from typing import Any, NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.outcome import Outcome, Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.plugins.default_preemption import evaluator, findings_cache, search
from kubestow.scheduler.plugins.default_preemption.dry_run import DryRun, reprieve
from kubestow.testing.builders import make_node, make_pod
from support.plugins.preemption_world import World
from support.settled import settled

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
NODES = tuple(f"n{i}" for i in range(6))
WEB = {"matchLabels": {"app": "web"}}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, "labelSelector": WEB}]
        }
    }
}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    ]
}
SHAPES: dict[str, dict[str, Any]] = {
    "large": {"cpu": "4", "priority": 10},
    "middling": {"cpu": "2", "priority": 10},
    "less important": {"cpu": "3", "priority": 5},
    "of too much memory": {"cpu": "1", "memory": "40Gi", "priority": 10},
    "with a port": {"cpu": "1", "priority": 10, "host_ports": (80,)},
    "of a node": {"cpu": "3", "priority": 10, "node_selector": {"disk": "ssd"}},
    "spread": {"cpu": "2", "priority": 10, "labels": {"app": "web"}, "spec": SPREAD},
    "apart": {"cpu": "2", "priority": 10, "labels": {"app": "web"}, "spec": APART},
}
FEW_CANDIDATES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 30, minCandidateNodesAbsolute: 1}
"""


class Schedule(NamedTuple):
    shape: str
    acts: bool
    """Whether victims are evicted and the pod waits for their node."""
    nominated: str


class Run(NamedTuple):
    node: str
    cpu: str
    priority: int
    app: str
    started: float | None
    port: bool


class Remove(NamedTuple):
    which: int


class SetNode(NamedTuple):
    name: str
    cpu: str
    disk: str
    tainted: bool


class RemoveNode(NamedTuple):
    name: str


class Budget(NamedTuple):
    app: str
    allowed: int


class Nominate(NamedTuple):
    node: str
    cpu: str
    priority: int


class EndNomination(NamedTuple):
    which: int


names, numbers = st.sampled_from(NODES), st.integers(0, 30)
runs = st.builds(
    Run,
    names,
    st.sampled_from(["1", "1", "2", "500m"]),
    st.integers(0, 6),
    st.sampled_from(["web", "db"]),
    st.sampled_from([None, 1_000.0, 2_000.0]),
    st.sampled_from([False, False, True]),
)
set_nodes = st.builds(
    SetNode,
    names,
    st.sampled_from(["4", "4", "3"]),
    st.sampled_from(["ssd", "hdd"]),
    st.sampled_from([False, False, False, True]),
)


@st.composite
def stories(draw: st.DrawFn) -> list[Any]:
    """Draw a full cluster and events; most pods have a few shapes, so that findings are cached."""
    shapes = st.sampled_from(draw(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=2)))
    acts, nominated = st.sampled_from([False, False, True]), st.sampled_from(["", "", "", "", "n0"])
    schedules = st.builds(Schedule, shapes, acts, nominated)
    events = st.one_of(
        *[schedules] * 8,
        runs,
        set_nodes,
        st.builds(Remove, numbers),
        st.builds(RemoveNode, names),
        *[st.builds(Budget, st.sampled_from(["web", "db"]), st.integers(0, 2))] * 3,
        st.builds(Nominate, names, st.sampled_from(["1", "3"]), st.integers(4, 11)),
        st.builds(EndNomination, numbers),
    )
    return [
        *draw(st.lists(set_nodes, min_size=3, max_size=6)),
        *draw(st.lists(runs, min_size=8, max_size=20)),
        *draw(st.lists(events, min_size=5, max_size=30)),
    ]


class Story:
    """A world in which a sequence of events happens."""

    def __init__(self, configuration: str) -> None:
        self.world = World(seed=1, configuration=configuration)
        self.cycles = SchedulingCycles(self.world.cluster, self.world.nominator, lambda rows: int(rows[0]))
        self._running: list[Pod] = []
        self._nominated: list[Pod] = []

    def apply(self, what: Any, name: str) -> Any:
        """Apply an event and return the result of a cycle."""
        world = self.world
        match what:
            case Schedule():
                return self._schedule(what, name)
            case Run(node, cpu, priority, app, started, port):
                ports = (80,) if port else ()
                self._running.append(
                    world.run(
                        name, node, cpu=cpu, priority=priority, labels={"app": app}, started=started, host_ports=ports
                    )
                )
            case Remove(which) if self._running:
                world.cluster.remove_pod(self._running.pop(which % len(self._running)).metadata.uid)
            case SetNode(node, cpu, disk, tainted):
                taints = ["dedicated:NoSchedule"] if tainted else []
                labels = {"disk": disk}
                world.cluster.set_node(
                    make_node(node, cpu=cpu, zone=f"z{int(node[1]) % 2}", labels=labels, taints=taints)
                )
            case RemoveNode(node):
                world.cluster.remove_node(node)
            case Budget(app, allowed):
                world.budget(app, allowed, selector={"matchLabels": {"app": app}})
            case Nominate(node, cpu, priority):
                self._nominate(make_pod(name, cpu=cpu, priority=priority), node)
            case EndNomination(which) if self._nominated:
                world.nominator.remove(self._nominated.pop(which % len(self._nominated)).metadata.uid)
        return None

    def _nominate(self, pod: Pod, node: str) -> None:
        self._nominated.append(pod)
        self.world.nominator.nominate(pod, node)

    def _schedule(self, what: Schedule, name: str) -> Any:
        status = {"nominatedNodeName": what.nominated} if what.nominated else {}
        pod = make_pod(name, status=status, **SHAPES[what.shape])
        if what.nominated:
            self._nominate(pod, what.nominated)
        outcome = settled(self.cycles.run(self.world.profile, PodInfo(pod)))
        if what.acts and not isinstance(outcome, Placed) and outcome.nominated_node:
            self._nominate(pod, outcome.nominated_node)
            for victim in outcome.victims:
                self.world.cluster.remove_pod(victim.uid)
        return plain(outcome)


def plain(outcome: Outcome) -> Any:
    """Return an outcome as plain values."""
    if isinstance(outcome, Placed):
        return outcome.node
    victims = [pod.key for pod in outcome.victims], [pod.key for pod in outcome.to_unnominate]
    return outcome.code, outcome.message, outcome.nominated_node, victims


@settings(max_examples=200, deadline=None)
@given(story=stories(), configuration=st.sampled_from(["", FEW_CANDIDATES]))
def test_decisions_do_not_depend_on_the_cache(story: list[Any], configuration: str) -> None:
    """Node, victims and message are the same with the same seed, for equal and other pods, after any events."""
    cached, uncached = Story(configuration), Story(configuration)
    for number, what in enumerate(story):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(findings_cache, "_MAX_SIGNATURES", 0)
            expected = uncached.apply(what, f"p{number}")
        assert cached.apply(what, f"p{number}") == expected
        if isinstance(expected, tuple):
            event("preempts" if expected[2] else "cannot preempt")


def two_nodes() -> Story:
    """Return a world in which the pod on n0 is less important than that on n1, after two cached searches."""
    world = Story("")
    for name, node, priority in (("low", "n0", 0), ("high", "n1", 1)):
        world.apply(SetNode(node, "4", "ssd", tainted=False), "")
        world.apply(Run(node, "4", priority, "web", None, port=False), name)
    for name in "ab":
        assert chosen(world, name) == "n0"
    return world


def chosen(world: Story, name: str) -> str | None:
    """Return the node that is preempted for another large pod."""
    outcome: str | None = world.apply(Schedule("large", acts=False, nominated=""), name)[2]
    return outcome


def test_equal_pods_try_a_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next pod tries only the node that has changed."""
    world, tried = two_nodes(), list[str]()

    def noting(*args: Any) -> DryRun:
        run = reprieve(*args)
        tried.extend(world.world.cluster.nodes.names[row] for row in run.victims.rows)
        return run

    monkeypatch.setattr(search, "reprieve", noting)
    assert chosen(world, "c") == "n0"
    assert tried == []
    world.apply(Run("n0", "0", 2, "db", None, port=False), "another")
    assert chosen(world, "d") == "n0"
    assert tried == ["n0"]


def test_a_nominated_pod_does_not_share_its_nominated_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own nomination is ignored on that node; findings for other nodes are shared."""
    world, tried = two_nodes(), list[str]()

    class Noting(search.Search):
        def _try(self, rows: Any) -> None:
            tried.extend(world.world.cluster.nodes.names[row] for row in rows)
            super()._try(rows)

    monkeypatch.setattr(evaluator, "Search", Noting)
    outcome = world.apply(Schedule("large", acts=False, nominated="n0"), "nominated")
    assert (outcome[2], tried) == ("n0", ["n0"])
    assert chosen(world, "c") == "n1"
    assert tried == ["n0", "n0"]
    assert chosen(world, "d") == "n1"
    assert tried == ["n0", "n0"]


def test_changed_budgets_discard_findings() -> None:
    """Nodes are tried again if other evictions violate a budget."""
    world = two_nodes()
    world.world.cluster.set_pod(make_pod("high", node="n1", cpu="4", priority=1, labels={"app": "db"}))
    assert chosen(world, "c") == "n0"
    world.apply(Budget("web", 0), "")
    assert chosen(world, "d") == "n1"
    world.apply(Budget("web", 1), "")
    assert chosen(world, "e") == "n0"


def test_the_number_of_cached_signatures_is_limited() -> None:
    """Memory does not grow with the number of signatures."""
    kept = findings_cache.FindingsCache(World("a").cluster)
    first = kept.findings("first")
    assert kept.findings("first") is first
    for number in range(100):
        kept.findings(number)
    assert kept.findings("first") is not first
    assert kept.findings(None) is not kept.findings(None)


def test_new_nodes_are_tried() -> None:
    """Cached findings grow with the cluster."""
    world = two_nodes()
    for number in range(100):
        name = f"later-{number}"
        world.world.cluster.set_node(make_node(name))
        world.world.run(f"low-{name}", name, cpu="4", priority=0 if number < 99 else -1)
    assert chosen(world, "c") == "later-99"

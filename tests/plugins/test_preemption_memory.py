"""What is remembered from pods before does not change which pods are evicted where, nor what is said if none can be."""

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
from plugins.preemption_world import World
from settled import settled

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
    """A full cluster, and what happens to it; most pods are of a few shapes, so that there is something to remember."""
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


class Told:
    """A world in which a story happens."""

    def __init__(self, configuration: str) -> None:
        self.world = World(seed=1, configuration=configuration)
        self.cycles = SchedulingCycles(self.world.cluster, self.world.nominator, lambda rows: int(rows[0]))
        self._running: list[Pod] = []
        self._nominated: list[Pod] = []

    def happen(self, what: Any, name: str) -> Any:
        """Carry out an event; returns what a cycle came to."""
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
        return told(outcome)


def told(outcome: Outcome) -> Any:
    """What an outcome says, in plain values."""
    if isinstance(outcome, Placed):
        return outcome.node
    victims = [pod.key for pod in outcome.victims], [pod.key for pod in outcome.to_unnominate]
    return outcome.code, outcome.message, outcome.nominated_node, victims


@settings(max_examples=200, deadline=None)
@given(story=stories(), configuration=st.sampled_from(["", FEW_CANDIDATES]))
def test_decisions_are_the_same(story: list[Any], configuration: str) -> None:
    """Same node, victims and words, with the same luck: for equal and other pods, whatever happens in between."""
    remembering, forgetting = Told(configuration), Told(configuration)
    for number, what in enumerate(story):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(findings_cache, "_MAX_SIGNATURES", 0)
            expected = forgetting.happen(what, f"p{number}")
        assert remembering.happen(what, f"p{number}") == expected
        if isinstance(expected, tuple):
            event("preempts" if expected[2] else "cannot preempt")


def two_nodes() -> Told:
    """The pod on n0 matters less than the one on n1; and two pods that looked where there is room for them."""
    telling = Told("")
    for name, node, priority in (("low", "n0", 0), ("high", "n1", 1)):
        telling.happen(SetNode(node, "4", "ssd", tainted=False), "")
        telling.happen(Run(node, "4", priority, "web", None, port=False), name)
    for name in "ab":
        assert chosen(telling, name) == "n0"
    return telling


def chosen(telling: Told, name: str) -> str | None:
    """The node that is preempted for another large pod."""
    outcome: str | None = telling.happen(Schedule("large", acts=False, nominated=""), name)[2]
    return outcome


def test_equal_pods_try_a_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next pod tries only the node where something has happened since."""
    telling, tried = two_nodes(), list[str]()

    def noting(*args: Any) -> DryRun:
        run = reprieve(*args)
        tried.extend(telling.world.cluster.nodes.names[row] for row in run.victims.rows)
        return run

    monkeypatch.setattr(search, "reprieve", noting)
    assert chosen(telling, "c") == "n0"
    assert tried == []
    telling.happen(Run("n0", "0", 2, "db", None, port=False), "another")
    assert chosen(telling, "d") == "n0"
    assert tried == ["n0"]


def test_a_nominated_pod_tries_its_own_node_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves no room for itself there, as the others do; of other nodes it knows what they know."""
    telling, tried = two_nodes(), list[str]()

    class Noting(search.Search):
        def _try(self, rows: Any) -> None:
            tried.extend(telling.world.cluster.nodes.names[row] for row in rows)
            super()._try(rows)

    monkeypatch.setattr(evaluator, "Search", Noting)
    outcome = telling.happen(Schedule("large", acts=False, nominated="n0"), "nominated")
    assert (outcome[2], tried) == ("n0", ["n0"])
    assert chosen(telling, "c") == "n1"
    assert tried == ["n0", "n0"]
    assert chosen(telling, "d") == "n1"
    assert tried == ["n0", "n0"]


def test_a_budget_that_changes_is_heeded() -> None:
    """Nodes are tried again when other evictions would break a budget, or no longer."""
    telling = two_nodes()
    telling.world.cluster.set_pod(make_pod("high", node="n1", cpu="4", priority=1, labels={"app": "db"}))
    assert chosen(telling, "c") == "n0"
    telling.happen(Budget("web", 0), "")
    assert chosen(telling, "d") == "n1"
    telling.happen(Budget("web", 1), "")
    assert chosen(telling, "e") == "n0"


def test_only_the_last_few_kinds_of_pods_are_remembered() -> None:
    """However many kinds of pods preempt, memory does not grow."""
    kept = findings_cache.FindingsCache(World("a").cluster)
    first = kept.findings("first")
    assert kept.findings("first") is first
    for number in range(100):
        kept.findings(number)
    assert kept.findings("first") is not first
    assert kept.findings(None) is not kept.findings(None)


def test_nodes_that_come_later_are_tried() -> None:
    """However many: what is remembered grows with the cluster."""
    telling = two_nodes()
    for number in range(100):
        name = f"later-{number}"
        telling.world.cluster.set_node(make_node(name))
        telling.world.run(f"low-{name}", name, cpu="4", priority=0 if number < 99 else -1)
    assert chosen(telling, "c") == "later-99"

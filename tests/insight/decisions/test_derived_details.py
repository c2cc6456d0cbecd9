"""The details of a past decision, derived from the history, equal a full evaluation at the time of the decision."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.details import SchedulerParts
from kubestow.insight.decisions.evaluation_run import EvaluationRun
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.recorder import Recorder
from kubestow.insight.decisions.schema import Rejected
from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import SearchedNodes
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.framework.detached import FirstRng, FixedClock
from kubestow.scheduler.framework.results import PluginError
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.fewest_nodes import fewest_nodes
from support.insight.records import archive_of, nodes_of
from support.plugins.device_world import claim, claiming, device_class, device_slice, exactly, gpus
from support.scenarios.gangs import GATES, TREE_GATES
from support.scenarios.group_story import Story
from support.scenarios.random_events import Chaos
from support.scheduler.random_clusters import PROFILES
from support.scheduler.stories import Schedule, World, stories, stories_of_many_sizes

# The cluster and the cycle alone: a second cluster with the same changes has the expected results.


class Recorded:
    """A world that shares results between equal pods and records its decisions."""

    def __init__(self, profile: str, percentage: int, upcoming: Any) -> None:
        self.recorder = Recorder(clock=FixedClock(), stopwatch=lambda: 0.0, rng=FirstRng(), limit=1 << 40)
        self.world = world = World(profile, percentage, sharing=True, upcoming=upcoming, history=self.recorder.history)
        scheduled = SchedulerParts(world.cluster, world.nominator, world.features, SchedulerMetrics())
        self.archive = Archive(self.recorder, scheduled)

    def record(self, pod: PodInfo) -> Record:
        """Record the last cycle of the world."""
        self.recorder.on_decision(
            Attempt(QueuedPod(pod.pod, 0.0), pod, self.world.profile, 0.0), self.world.outcome, 0.0
        )
        return next(iter(self.recorder))


def expected(world: World, pod: PodInfo, searched: SearchedNodes, *, preempts: bool) -> EvaluationRun:
    """Evaluate a pod in the current state of a cluster, on the rows that a cycle evaluated."""
    evaluation = Evaluation(world.profile, world.cluster, world.nominator, pod)
    order = searched.order if searched.start is None else world.cluster.order.rows_from(searched.start)

    def find() -> Any:
        assert order is not None
        rows = order[: searched.evaluated]
        verdicts = evaluation.verdicts = evaluation.verdicts_on(np.sort(rows))
        return rows[verdicts.passing[verdicts.positions_of(rows)]]

    return EvaluationRun(evaluation, None if order is None else find, fewest_scored=2, preempts=preempts)


def compare(
    profile: str, sample: tuple[int, int], story: list[Any], upcoming: Callable[[list[PodInfo]], list[PodInfo]]
) -> None:
    """Apply a story to two clusters; compare evaluations in one of them with details derived from the other."""
    fewest, percentage = sample
    pods = [PodInfo(what.pod(f"p{i}")) if isinstance(what, Schedule) else None for i, what in enumerate(story)]
    coming: list[PodInfo] = []
    found: list[tuple[Record, EvaluationRun, dict[str, schema.NodeResult]]] = []
    # So that not all nodes of a small cluster are evaluated.
    with fewest_nodes(fewest):
        recorded = Recorded(profile, percentage, lambda most: coming[:most])
        alone = World(profile, percentage, sharing=False)
        for number, what in enumerate(story):
            pod = pods[number]
            coming = upcoming([pod for pod in pods[number + 1 :] if pod is not None])
            recorded.world.happen(what, f"p{number}", pod)
            if pod is not None:
                record = recorded.record(pod)
                assert record.searched is not None
                failed = record.failed
                preempts = failed is not None and failed.is_rejection
                judged = expected(alone, pod, record.searched, preempts=preempts)
                found.append((record, judged, judged.node_results()))
                event(record.outcome)
            alone.happen(what, f"p{number}", pod)
        # Decisions can be read in any order.
        random.Random(len(found)).shuffle(found)
        details = recorded.archive.details()
        for record, judged, nodes in found:
            decision = recorded.archive.decision(record, details=details)
            assert decision.nodesDropped == ""
            assert nodes_of(decision) == nodes
            assert decision.preFilter == judged.pre_filter()
            assert decision.preemption == judged.preemption()
            if decision.chosen and decision.choice is not None:
                assert decision.chosen in decision.choice.best


@given(
    profile=st.sampled_from(sorted(PROFILES)),
    sample=st.sampled_from([(100, 0), (2, 0), (1, 30)]),
    story=stories(),
)
@settings(max_examples=200, deadline=None)
def test_pods_that_share_results(profile: str, sample: tuple[int, int], story: list[Any]) -> None:
    """Nodes and pods are added, changed and deleted; some pods are nominated, some preempt."""
    compare(profile, sample, story, lambda coming: coming)


@given(
    profile=st.sampled_from(["default", "by shape, ignoring gpus"]),
    sample=st.sampled_from([(2, 0), (1, 30), (1, 15)]),
    story=stories_of_many_sizes(),
    is_right=st.sampled_from([True, True, False]),
)
@settings(max_examples=200, deadline=None)
def test_pods_that_are_evaluated_ahead(profile: str, sample: tuple[int, int], story: list[Any], is_right: bool) -> None:
    """The details are right even if other pods are scheduled than those that were evaluated ahead."""
    compare(profile, sample, story, lambda coming: coming if is_right else coming[::-2])


# A whole scheduler: just before each cycle, the live cluster is evaluated.

LiveNodes = dict[str, Rejected | None]
"""The rejection of each node; None for a feasible node."""


class Witness:
    """Evaluates each pod before its cycle, and keeps each decision with its details."""

    def __init__(self, world: SchedulerHarness) -> None:
        self.archive = archive = archive_of(world)
        self.live: dict[tuple[str, int, tuple[int, ...]], LiveNodes] = {}
        """By UID of the pod, revision, and the rows of the placement; no rows mean all rows."""
        self.at_once: dict[int, schema.Decision] = {}
        archive.recorder.listeners.append(self._keep)

    def _keep(self, record: Record) -> None:
        self.at_once.setdefault(record.id, self.archive.decision(record))

    def evaluate(self, cycles: SchedulingCycles, profile: Any, pod: PodInfo, within: Any) -> None:
        """Evaluate a pod on all rows of the placement."""
        cluster = cycles._cluster
        if cluster.history is None:
            return
        evaluation = Evaluation(profile, cluster, cycles._nominator, pod, within)
        nodes: LiveNodes = {}
        try:
            if cluster.nodes.count and evaluation.pre_filter():
                verdicts = evaluation.verdicts_on(evaluation.narrowed_rows())
                nodes = {cluster.nodes.names[row]: None for row in verdicts.rows.tolist()}
                for rejection, positions in verdicts.kinds():
                    rejected = Rejected.of(rejection)
                    nodes.update((cluster.nodes.names[row], rejected) for row in verdicts.rows[positions].tolist())
        except (PluginError, ValueError):
            nodes = {}
        self.live[pod.uid, cluster.revision, () if within is None else tuple(within.tolist())] = nodes

    def check(self) -> int:
        """Compare all decisions; return the number of decisions with nodes."""
        details, count = self.archive.details(), 0
        for record in self.archive:
            decision = self.archive.decision(record, details=details)
            assert decision.nodesDropped == ""
            before = self.at_once[record.id]
            assert lasting(decision) == lasting(before)
            nodes = nodes_of(decision)
            count += bool(nodes)
            searched = record.searched
            if searched is None or searched.is_counted or not nodes:
                continue
            placement = searched.placement
            rows = () if placement is None else tuple(placement.rows.tolist())
            live = self.live[record.uid, searched.revision, () if len(rows) == searched.node_count else rows]
            assert {name: result.rejected for name, result in nodes.items()} == {name: live[name] for name in nodes}
            if record.failed is not None and decision.preemption is not None and record.failed.preempting_plugin:
                assert [one.pod for one in decision.preemption.victims] == [one.key for one in record.failed.victims]
            if decision.chosen and decision.choice is not None:
                assert decision.chosen in decision.choice.best
        for group in self.archive.recorder.groups:
            derived = self.archive.group_decision(group, details)
            placed = [(one.name, one.nodes, one.placed) for one in derived.placements]
            assert placed == [(one.name, one.nodes, one.placed) for one in group.decision.placements]
        return count


def lasting(decision: schema.Decision) -> schema.Decision:
    """Return a decision without the binding and the queue history."""
    return replace(decision, binding=None, outcome="", message="", rejectedBy=(), queue=schema.Queue())


@contextmanager
def witnessed(world: SchedulerHarness) -> Iterator[Witness]:
    """Evaluate each pod before its cycle in a harness."""
    witness, schedule = Witness(world), SchedulingCycles.schedule

    def evaluating(cycles: Any, profile: Any, pod: PodInfo, within: Any = None, **options: Any) -> Any:
        if not options.get("feasibility_only"):
            witness.evaluate(cycles, profile, pod, within)
        return schedule(cycles, profile, pod, within, **options)

    with patch.object(SchedulingCycles, "schedule", evaluating):
        yield witness


@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False), events=st.integers(10, 80))
def test_random_events(rng: random.Random, events: int) -> None:
    """There are claims, taints, gates, preemption, faults, pods that wait for each other, and slow bindings."""
    chaos = Chaos(rng, record_bytes=1 << 30)
    with chaos.harness, witnessed(chaos.harness) as witness:
        for _ in range(events):
            chaos.step()
        chaos.calm_down()
        chaos.harness.run_for(20.0)
        witness.check()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1_000_000), gates=st.sampled_from([GATES, TREE_GATES]))
def test_pod_groups(seed: int, gates: tuple[str, ...]) -> None:
    """Each pod of a group or tree has the state of nodes after the previous pods were placed."""
    story = Story(seed, gates, record_bytes=1 << 30)
    with story.harness as world, witnessed(world) as witness:
        for _ in range(10):
            story.step()
        world.run_for(12.0)
        assert witness.check() > 0


@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_devices(rng: random.Random) -> None:
    """Devices are reserved, allocated and freed; slices and nodes are added and deleted."""
    with SchedulerHarness(record_bytes=1 << 30, latency=0.01) as world, witnessed(world) as witness:
        world.cluster.add(device_class())
        for number in range(4):
            world.cluster.add(make_node(f"n{number}", cpu="2"))
            world.cluster.add(device_slice(f"n{number}", gpus(rng.randint(1, 3))))
        for number in range(20):
            match rng.randrange(6):
                case 0 | 1 | 2:
                    world.cluster.add(claim(f"c{number}", exactly(rng.randint(1, 3))))
                    world.cluster.add(claiming(f"p{number}", f"c{number}", cpu="500m"))
                case 3:
                    world.cluster.add(make_pod(f"p{number}", cpu=rng.choice(["500m", "2", "9"])))
                case 4:
                    pods = world.cluster.all(Pod)
                    if pods:
                        world.cluster.delete(rng.choice(pods), grace_seconds=0)
                case _:
                    node = f"n{rng.randrange(4)}"
                    world.cluster.update(device_slice(node, gpus(rng.randint(1, 3)), generation=number + 2))
            world.run_for(rng.choice([0.0, 0.005, 0.1, 2.0]))
        world.run_for(12.0)
        assert witness.check() > 0


@pytest.mark.parametrize("seed", range(3))
def test_long_stories(seed: int) -> None:
    """There are thousands of changes since the oldest decisions."""
    chaos = Chaos(random.Random(seed), record_bytes=1 << 30)
    with chaos.harness, witnessed(chaos.harness) as witness:
        for _ in range(1500):
            chaos.step()
        assert archive_of(chaos.harness).recorder.history.revision > 500
        assert witness.check() > 100

"""`kubestow view` restores the cluster, queue and objects at every moment from the file of a simulation."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode, encode

from kubestow import config
from kubestow.insight.page import tables
from kubestow.insight.page.history import PageHistory, State
from kubestow.insight.page.moments import Moment
from kubestow.insight.page.run import page_configuration
from kubestow.insight.page.scenes import all_objects
from kubestow.insight.page.watching import Watch, WatchedScheduler
from kubestow.simulator import Simulation
from kubestow.simulator import page_files as files
from kubestow.simulator.page_files import read, record_moments

GROUP = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"cpus": cpu}},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def pod(name: str, cpu: str, seconds: float = 0.0, **spec: Any) -> dict[str, Any]:
    annotations = {"kubestow.dev/run-seconds": str(seconds)} if seconds else {}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def responses(state: State) -> bytes:
    """Return all responses about a state."""
    table = state.cluster.nodes
    names = [table.names[row] for row in tables.live_rows(table)]
    answers = [tables.node(state, name) for name in names]
    found = sorted(map(str, tables.search(state, "", ())["pods"]))
    return encode([tables.ClusterTable().of(state), answers, tables.queue(state), tables.groups(state), found])


def steps(simulation: Simulation) -> list[Any]:
    """Return the steps of the simulation, one per second."""
    return [
        lambda: simulation.add(node("a"), node("b"), CLAIM),
        lambda: simulation.add(*(pod(f"p{number}", "1", 3.5) for number in range(5))),
        lambda: simulation.add(pod("big", "9"), pod("next", "2"), GROUP),
        lambda: simulation.delete("Node", "a"),
        lambda: simulation.add(node("c", "2"), node("a", "8")),
        lambda: simulation.add(pod("late", "1", 2.0), pod("urgent", "4", priorityClassName="system-node-critical")),
    ]


def by_uid(objects: list[Any]) -> dict[str, Any]:
    """Return objects by UID, without fields that do not affect scheduling: the version, and the JSON source."""
    trees = [decode(encode(obj)) | {"source": None} for obj in objects]
    return {tree["metadata"].pop("uid"): tree for tree in trees if tree["metadata"].pop("resourceVersion")}


class RecordingWatch(Watch):
    """Makes moments, and keeps all responses at each of them."""

    def __init__(self, watched: WatchedScheduler) -> None:
        super().__init__(watched)
        core = watched.core
        self._history = PageHistory(core.cluster, core.queue.nominator, watched.recorder.history)
        self.answers: dict[float, bytes] = {}

    def next_moment(self, *, anyway: bool = False) -> Moment | None:
        moment = super().next_moment(anyway=anyway)
        if moment is not None:
            self._history.add(moment)
            self.answers[moment.time] = responses(self._history.now)
        return moment


@pytest.mark.parametrize("limit", [1 << 26, 20_000])
def test_every_moment_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Nodes and pods are added, changed and deleted; with a small limit, changes are dropped soon."""
    seen: list[RecordingWatch] = []

    def watch(watched: WatchedScheduler) -> RecordingWatch:
        seen.append(RecordingWatch(watched))
        return seen[0]

    monkeypatch.setattr(files, "Watch", watch)
    with Simulation(record_bytes=limit) as simulation:
        core, features = simulation.core, config.Features()
        configuration = page_configuration(config.default(features), features)
        with record_moments(simulation, tmp_path, 0.5, configuration):
            for happens in steps(simulation):
                happens()
                simulation.run_for(1.0)
        objects = all_objects(core.cluster, core.intake.pending_pods())
    (tmp_path / "decisions.jsonl").write_bytes(b"")
    (tmp_path / "results.json").write_bytes(b"{}")
    run = read(tmp_path)
    history = core.cluster.history
    assert history is not None
    assert (history.first > 0) == (limit == 20_000)
    answers = list(seen[0].answers.items())
    assert len(answers) >= 10
    for time, expected in [*answers, *reversed(answers)]:
        state = run.history.at(time)
        assert state is not None
        assert responses(state) == expected
    assert run.bench is not None
    assert by_uid(run.bench.scene().objects) == by_uid(objects)

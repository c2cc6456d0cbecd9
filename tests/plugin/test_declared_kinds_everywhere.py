"""Kinds and values of plugins in simulations, recordings, explanations and capacity, from files and live clusters."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubestow import config
from kubestow.api.failures import CallError
from kubestow.cli import main
from kubestow.plugin import CustomObject, Handle, custom_resource
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.polling import NoHttp
from kubestow.simulator import Simulation
from kubestow.simulator.recording.files import RecordingWriter, entries
from kubestow.simulator.recording.following import find_custom, follow
from kubestow.simulator.recording.polled import record_polled
from kubestow.simulator.recording.replaying import Replay
from support.client.doubles import SkewedClock
from support.client.virtualtime import run
from support.integration.cluster import eventually, node, running_cluster, running_scheduler
from support.integration.custom_definitions import DEFINITIONS, QUOTAS, definition
from support.plugins.platform_plugins import QuotaGuard
from support.simulator.objects import HEAD, nodes, pod

Object = dict[str, Any]
API_VERSION = "scheduling.x-k8s.io/v1alpha1"
PLUGINS = """
from dataclasses import dataclass, field

from kubestow.plugin import Action, ObjectMeta, Resource, SKIP, custom_resource, on, parse_quantities, unschedulable


@custom_resource("scheduling.x-k8s.io/v1alpha1", "elasticquotas")
@dataclass(frozen=True)
class ElasticQuota:
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: dict = field(default_factory=dict)


@custom_resource("v1", "configmaps", field_selector="metadata.name=allowed,metadata.namespace=kube-system")
@dataclass(frozen=True)
class ConfigMap:
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    data: dict[str, str] = field(default_factory=dict)


class Quota:
    name = "Quota"
    watches = (ElasticQuota, ConfigMap)

    def __init__(self, args, handle):
        self.quotas = handle.objects(ElasticQuota)
        self.maps = handle.objects(ConfigMap)
        self.pods = handle.pods.index_by(lambda pod: pod.namespace)
        self.hot = handle.poll(self.fetch, interval=10, stale_after=1000)

    async def fetch(self) -> list[str]:
        raise OSError("connection refused")

    def pre_filter(self, pod):
        used = self.pods.requested(pod.namespace)
        for quota in self.quotas:
            limits = parse_quantities(quota.spec["max"])
            for name, limit in limits.items():
                if used.get(name, 0) + pod.requests.amounts.get(name, 0) > limit:
                    return unschedulable(f"max of {quota.metadata.name} exceeded")
        for one in self.maps:
            if one.data.get("all") == "no":
                return unschedulable("refused by a ConfigMap")
        return None

    def filter(self, state, pod, node):
        return "node is hot" if node.name in (self.hot.value or ()) else None
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Quota}]}}}]
"""


def quota(cpu: str) -> Object:
    return {"apiVersion": API_VERSION, "kind": "ElasticQuota", "metadata": {"name": "q"}, "spec": {"max": {"cpu": cpu}}}


def config_map(name: str) -> Object:
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"all": "no"}}


class Inputs:
    """Files for commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = ("--plugin", self.write("quota.py", PLUGINS), "--config", self.write("config.yaml", CONFIG))

    def write(self, name: str, content: str | list[Object]) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else "\n---\n".join(map(json.dumps, content)))
        return str(path)

    def run(self, *args: str) -> Result:
        return CliRunner().invoke(main, [*args, *self.options])


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return Inputs(tmp_path)


def decided(folder: Path) -> dict[str, str]:
    lines = (folder / "decisions.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return {one["pod"]: one["chosen"] or one["message"] for one in found if "pod" in one}


def test_a_simulation_has_the_objects_of_plugins(inputs: Inputs) -> None:
    """They need no definition; a ConfigMap that the field selector does not select makes no difference."""
    objects = [*nodes(1, cpu=8), quota("1500m"), config_map("other"), pod("a"), pod("b")]
    out = inputs.folder / "out"
    done = inputs.run("simulate", inputs.write("cluster.json", objects), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "Ignored" not in done.output
    found = decided(out)
    assert (found["default/a"], "max of q exceeded" in found["default/b"]) == ("node-0", True)
    done = inputs.run("simulate", inputs.write("more.json", [*objects, config_map("allowed")]), "--out", str(out) + "2")
    assert "refused by a ConfigMap" in decided(inputs.folder / "out2")["default/a"], done.output


def test_a_simulation_changes_and_forks_objects_of_plugins() -> None:
    """Pods are retried when an object changes, also in a fork."""
    with Simulation(plugins=(QuotaGuard,)) as simulation:
        simulation.add(*nodes(1, cpu=8), quota("1"), pod("a"), pod("b"))
        simulation.settle()
        assert (simulation.node_of("a"), simulation.node_of("b")) == ("node-0", "")
        with simulation.fork() as fork:
            fork.update("ElasticQuota", "q", lambda one: one["spec"]["max"].update(cpu="2"))
            fork.settle()
            assert fork.node_of("b") == "node-0"
        assert [one["metadata"]["name"] for one in simulation.objects("ElasticQuota")] == ["q"]
        simulation.delete("ElasticQuota", "q")
        simulation.settle()
        assert simulation.node_of("b") == "node-0"


def test_values_for_polls_come_from_a_file(inputs: Inputs) -> None:
    """Each applies from its time on; a malformed file is named."""
    objects = [*nodes(1, cpu=8), pod("a")]
    cluster, out = inputs.write("cluster.json", objects), inputs.folder / "out"
    lines = '{"time": 0, "value": ["node-0"]}\n{"time": 5, "value": []}'
    data = inputs.write("hot.jsonl", lines)
    scenario = inputs.write("scenario.yaml", f"{HEAD}  duration: 20s\n")
    done = inputs.run("simulate", cluster, scenario, "--poll-data", f"Quota={data}", "--out", str(out))
    assert done.exit_code == 0, done.output
    *_, refused, last = [json.loads(line) for line in (out / "decisions.jsonl").read_text().splitlines()]
    assert ("node is hot" in refused["message"], last["chosen"], last["time"][:19]) == (
        True,
        "node-0",
        "2026-01-01T00:00:05",
    )
    wrong = inputs.run("simulate", cluster, "--poll-data", f"Quota={inputs.write('wrong.json', '{}}')}")
    assert (wrong.exit_code, "wrong.json" in wrong.output) == (2, True)


@pytest.mark.parametrize("command", [("simulate",), ("compare", "--config", "default"), ("sweep", "--workers", "1")])
def test_values_that_no_plugin_can_use_are_refused(inputs: Inputs, command: tuple[str, ...]) -> None:
    """The type is that of the result of `fetch`."""
    out = str(inputs.folder / "out")
    given = (*command, inputs.write("cluster.json", [*nodes(1), pod("a")]), "--out", out, "--poll-data")
    data = inputs.write("hot.json", '{"node-0": 1}')
    assert "there is no such plugin; there are: Quota" in inputs.run(*given, f"Qouta={data}").output
    refused = inputs.run(*given, f"Quota={data}")
    assert (refused.exit_code, "Error: polled value: Quota.fetch: the value does not fit" in refused.output) == (
        1,
        True,
    )


def test_comparisons_and_sweeps_use_values_of_a_file(inputs: Inputs) -> None:
    """A sweep with other values does not continue the one before."""
    scenario = inputs.write("scenario.yaml", f"{HEAD}  duration: 20s\n")
    files = (inputs.write("cluster.json", [*nodes(1, cpu=8), pod("a")]), scenario)
    data, out = f"Quota={inputs.write('hot.json', json.dumps(['node-0']))}", inputs.folder / "swept"
    done = inputs.run("compare", *files, "--config", "default", "--poll-data", data, "--seeds", "1", "-o", "json")
    figures = {one["name"]: (one["a"], one["b"]) for one in json.loads(done.output)["figures"]}
    assert figures["pods pending at the end"] == (0, 1)
    for hot, pending in ((["node-0"], 1), ([], 0)):
        data = f"Quota={inputs.write('hot.json', json.dumps(hot))}"
        done = inputs.run("sweep", *files, "--poll-data", data, "--workers", "1", "--out", str(out))
        (point,) = json.loads((out / "results.json").read_text())
        assert point["results"]["pods"]["pending"] == pending, done.output


def test_an_explanation_from_files_uses_objects_and_values_of_plugins(inputs: Inputs) -> None:
    """Objects of the kinds are read from --cluster, values from --poll-data."""
    asked = inputs.write("pod.json", [pod("a")])
    cluster = inputs.write("cluster.json", [*nodes(1, cpu=8), quota("500m")])
    done = inputs.run("explain", "-f", asked, "--cluster", cluster)
    assert "max of q exceeded" in done.output
    cluster = inputs.write("cluster.json", nodes(1, cpu=8))
    both = inputs.write("both.json", [pod("a"), quota("500m")])
    assert "max of q exceeded" in inputs.run("explain", "-f", both, "--cluster", cluster).output
    data = inputs.write("hot.json", '["node-0"]')
    done = inputs.run("explain", "-f", asked, "--cluster", cluster, "--poll-data", f"Quota={data}")
    assert "node is hot" in done.output


def test_capacity_from_files_uses_objects_of_plugins(inputs: Inputs) -> None:
    """The quota limits how many pods fit, and so does the last polled value."""
    asked = inputs.write("pod.json", [pod("a")])
    cluster = inputs.write("cluster.json", [*nodes(1, cpu=8), quota("3")])
    done = inputs.run("capacity", "--podspec", asked, "--cluster", cluster, "-o", "json")
    assert json.loads(done.output)["status"]["replicas"] == 3, done.output
    data = inputs.write("hot.jsonl", '{"time": 0, "value": []}\n{"time": 5, "value": ["node-0"]}')
    done = inputs.run("capacity", "--podspec", asked, "--cluster", cluster, "--poll-data", f"Quota={data}")
    assert "node is hot" in done.output


def test_a_replay_has_recorded_objects_and_values(tmp_path: Path) -> None:
    """Kinds that no plugin of the replay declares are left out."""

    class Listens(QuotaGuard):
        name = "QuotaGuard"
        seen: list[Any] = []

        def __init__(self, args: None, handle: Handle) -> None:
            super().__init__(args, handle)
            handle.poll(self.fetch, interval=1, stale_after=9, on_update=self.seen.append)

        async def fetch(self) -> int:
            return 0

    path = tmp_path / "recording.gz"
    writer = RecordingWriter(path)
    created = {"creationTimestamp": "2030-01-01T00:00:05Z", "namespace": "default"}
    pods = [
        {**one, "metadata": {**one["metadata"], **created, "uid": one["metadata"]["name"]}}
        for one in (pod("a"), pod("b"))
    ]
    begin = 1_893_456_000.0
    writer.add(begin, "start")
    for obj in (*nodes(1, cpu=8), quota("1")):
        writer.add(begin, "put", obj)
    writer.add(begin, "synced")
    writer.add_polled(begin + 1, "QuotaGuard.fetch", 7)
    for obj in pods:
        writer.add(begin + 5, "put", obj)
    writer.add(begin + 9, "end")
    writer.close()
    replay = Replay(path)
    with replay.simulation(plugins=(Listens,)) as simulation:
        simulation.run_for(9)
        assert (simulation.node_of("a"), simulation.node_of("b"), Listens.seen) == ("node-0", "", [7])
    with replay.simulation() as simulation:
        simulation.run_for(9)
        assert simulation.node_of("b") == "node-0"


def test_a_recorder_records_custom_resources_by_name(tmp_path: Path) -> None:
    """The kind is that of the server; a resource that it does not serve is an error with the option."""
    path = tmp_path / "recording.gz"

    async def main() -> None:
        async with running_cluster() as cluster, running_scheduler(cluster) as instance:
            await cluster.add(node("n1"))
            await cluster.call("POST", DEFINITIONS, definition("scheduling.x-k8s.io", "ElasticQuota"))
            access, name = instance.link.access, "elasticquotas.v1alpha1.scheduling.x-k8s.io"
            custom = await find_custom(access, SkewedClock(), [name])
            assert [one.kind for one in custom] == ["ElasticQuota"]
            with pytest.raises(CallError, match=r"--watch widgets\.v1\.example\.com: "):
                await find_custom(access, SkewedClock(), ["widgets.v1.example.com"])
            await cluster.call("POST", QUOTAS, quota("2"))
            writer = RecordingWriter(path)
            notes: list[str] = []
            task = asyncio.create_task(follow(access, writer, SkewedClock(), None, notes.append, custom))

            async def recording() -> bool:
                return "recording" in notes

            await eventually(recording)
            task.cancel()
            await asyncio.wait({task})

    run(main())
    kinds = {entry.object["kind"]: entry.object for entry in entries(path) if entry.op == "put"}
    assert kinds["ElasticQuota"]["spec"] == {"max": {"cpu": "2"}}


def test_only_selectable_fields_select_objects() -> None:
    """The names of the fields are those of the API."""
    with pytest.raises(ValueError, match=r"configmaps cannot be selected by data\.x: the fields are"):

        @custom_resource("v1", "configmaps", field_selector="data.x=1")
        class ConfigMap(CustomObject, frozen=True):
            pass


def test_a_recorder_records_polled_values(tmp_path: Path) -> None:
    """Plugins are created as in a scheduler; one that cannot be is named in a note."""
    file = tmp_path / "polls.py"
    file.write_text(POLLS)
    notes: list[str] = []
    writer = RecordingWriter(tmp_path / "recording.gz")

    async def main() -> None:
        clock = SkewedClock()
        plugins = PluginCollection([str(file)])
        background = record_polled(plugins, config.default(), writer, clock, NoHttp(), notes.append)
        await asyncio.sleep(25)
        background.close()
        await asyncio.sleep(0)

    writer.add(0, "start")
    run(main())
    writer.close()
    values = [(one.plugin, one.value) for one in entries(tmp_path / "recording.gz") if one.op == "poll"]
    assert values == [("Counts.fetch", {"calls": count}) for count in (1, 2, 3)]
    wanted = "plugin Fails cannot be created, so values that it polls are not recorded: needs arguments"
    assert notes == [wanted]


def test_a_recorder_that_hides_names_does_not_record_polled_values(tmp_path: Path) -> None:
    file = tmp_path / "polls.py"
    file.write_text(POLLS.partition("class Fails")[0])
    notes: list[str] = []
    writer = RecordingWriter(tmp_path / "recording.gz")

    async def main() -> None:
        plugins, clock = PluginCollection([str(file)]), SkewedClock()
        background = record_polled(plugins, config.default(), writer, clock, NoHttp(), notes.append, hides_names=True)
        await asyncio.sleep(25)
        background.close()
        await asyncio.sleep(0)

    run(main())
    writer.close()
    assert [one for one in entries(tmp_path / "recording.gz") if one.op == "poll"] == []
    assert notes == ["values of Counts.fetch are not recorded: --hash-names cannot replace the names in them"]


POLLS = """
class Counts:
    name = "Counts"

    def __init__(self, args, handle):
        self.calls = 0
        handle.poll(self.fetch, interval=10, stale_after=60)

    async def fetch(self) -> dict[str, int]:
        self.calls += 1
        return {"calls": self.calls}

    def filter(self, state, pod, node):
        return None


class Fails(Counts):
    name = "Fails"

    def __init__(self, args, handle):
        raise ValueError("needs arguments")
"""

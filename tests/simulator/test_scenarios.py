"""Scenarios: reading files, and running what they define."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.config import Features
from kubestow.simulator import running
from kubestow.simulator.measuring import Distribution
from kubestow.simulator.results import as_json, atomic_file
from kubestow.simulator.scenario.building import Prepared, build
from kubestow.simulator.scenario.example import EXAMPLE
from kubestow.simulator.scenario.reading import Scenario, read
from kubestow.simulator.simulation import Simulation
from support.simulator.objects import POD, Write, deployment, nodes, pod, template


def _built(scenario: Scenario) -> Simulation:
    return build(scenario, checked=True)


def test_the_example_runs(tmp_path: Path) -> None:
    """The output of --init is a scenario that runs, with all its events."""
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    done = running.run(Prepared(read([str(tmp_path / "s.yaml")])), checked=True)
    assert done.results["seconds"] == 7200
    assert done.results["pods"]["bound"] > 100
    assert done.results["utilisation"]["nodes"]["max"] > 6


def test_a_list_of_kubectl_is_simulated(tmp_path: Path) -> None:
    """The output of kubectl get -o json is a scenario; it runs until nothing more happens."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "9"}},
        }
    ]
    items += [deployment("web", 3), {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "x"}}]
    path = tmp_path / "list.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    scenario = read([str(path)])
    assert scenario.skipped == {"Odd (example.com/v1)": 1}
    done = running.run(Prepared(scenario), checked=True)
    assert (done.results["pods"]["bound"], done.results["pods"]["pending"]) == (2, 1)
    assert "Insufficient cpu" in done.results["pending"][0]["message"]


def test_arrivals_happen_at_their_times(write: Write, tmp_path: Path) -> None:
    """Times, random times and traces; run times are fixed, random, or in the trace."""
    (tmp_path / "t.csv").write_text("at,run,cpu\n10,5,500m\n1m,20,2\n")
    spec = f"""duration: 10m
nodes: [{{count: 1, cpu: 8}}]
arrivals:
- {{name: listed, times: [5s, 30s], run: 1m, {POD}}}
- {{name: chance, poisson: {{every: 10s}}, until: 2m, run: {{uniform: {{low: 1s, high: 2s}}}}, {POD}}}
- {{name: traced, trace: t.csv, {POD}}}
- name: jobs
  times: [0]
  object:
    apiVersion: batch/v1
    kind: Job
    spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}
"""
    with _built(read([write(spec)])) as simulation:
        simulation.run_for(12)
        names = simulation.pod_names()
        assert {"default/listed-0", "default/traced-0"} <= set(names)
        assert "default/listed-1" not in names
        assert any(name.startswith("default/jobs-0-") for name in names)
        simulation.run_for(20)
        assert "default/listed-1" in simulation.pod_names()
        assert "default/traced-0" not in simulation.pod_names()
        simulation.run_for(400)
        assert simulation.get("Job", "jobs-0")["status"]["succeeded"] == 1  # type: ignore[index]
        assert simulation.pod_names() == []


def test_losing_a_zone_and_getting_it_back(write: Write) -> None:
    """Nodes of a zone fail, their pods are replaced elsewhere, and later the zone takes pods again."""
    spec = """duration: 1h
nodes: [{count: 4, name: "n{}", cpu: 4, zones: [a, b]}]
events: [{at: 60s, fail: {labels: {topology.kubernetes.io/zone: a}}, lasts: 20m}]
"""
    with _built(read([write(spec)])) as simulation:
        simulation.add(deployment("web", 4))
        simulation.run_for(600)
        alive = [pod for pod in simulation.scheduled_pods() if pod.metadata.deletionTimestamp is None]
        assert {pod.spec.nodeName for pod in alive} == {"n1", "n3"}
        simulation.run_for(1200)
        simulation.update("Deployment", "web", lambda one: one["spec"].update(replicas=12))
        simulation.settle()
        assert {pod.spec.nodeName for pod in simulation.scheduled_pods()} == {"n0", "n1", "n2", "n3"}


def test_a_pod_that_arrived_is_deleted_by_its_name(write: Write) -> None:
    """Like any other pod; its name has a number appended."""
    spec = f"""nodes: [{{}}]
arrivals: [{{name: a, times: [1, 2], {POD}}}]
events: [{{at: 10, delete: {{kind: Pod, name: a-1}}}}]
"""
    with _built(read([write(spec)])) as simulation:
        simulation.run_for(60)
        assert simulation.pod_names() == ["default/a-0"]


def test_a_drain_waits_for_the_budget(write: Write) -> None:
    """Pods are evicted one by one, as their budget allows."""
    spec = """nodes: [{count: 2, name: "n{}", cpu: 4}]
events:
- at: 10s
  drain: {names: [n0]}
- at: 0
  apply:
  - apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: b}
    spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}
- at: 100s
  scale: {kind: Deployment, name: web, replicas: 1}
- at: 200s
  delete: {kind: Deployment, name: web}
- at: 300s
  remove: {names: [n0]}
"""
    with _built(read([write(spec)])) as simulation:
        simulation.add(deployment("web", 4))
        simulation.run_for(11)
        assert sum(pod.spec.nodeName == "n0" for pod in simulation.scheduled_pods()) >= 1
        simulation.run_for(60)
        assert {pod.spec.nodeName for pod in simulation.scheduled_pods()} == {"n1"}
        simulation.run_for(60)
        assert len(simulation.pod_names()) == 1
        simulation.run_for(400)
        assert simulation.pod_names() == []
        assert simulation.get("Node", "n0") is None


def test_pods_are_evicted_from_tainted_devices(write: Write) -> None:
    """As their claims tolerate it; rules that taint devices apply if their gate is on."""
    spec = """nodes: [{name: one, cpu: 4}]
events:
- at: 0
  apply:
  - {apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {}}
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {name: s}
    spec:
      driver: d.example.com
      nodeName: one
      pool: {name: one, generation: 1, resourceSliceCount: 1}
      devices: [{name: d0}]
  - apiVersion: resource.k8s.io/v1
    kind: ResourceClaim
    metadata: {name: c}
    spec:
      devices:
        requests:
        - name: r
          exactly:
            deviceClassName: c
            tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
- at: 100
  apply:
  - apiVersion: resource.k8s.io/v1
    kind: DeviceTaintRule
    metadata: {name: r}
    spec: {deviceSelector: {pool: one}, taint: {key: broken, effect: NoExecute}}
"""
    uses = [{"name": "c", "resourceClaimName": "c"}]
    for gates, left in (("", []), ("DRADeviceTaintRules=false", ["default/p"])):
        with build(read([write(spec)]), features=Features.parse(gates), checked=True) as simulation:
            simulation.add(pod("p", resourceClaims=uses))
            simulation.run_for(155)
            assert simulation.pod_names() == ["default/p"]
            simulation.run_for(60)
            assert simulation.pod_names() == left


def test_a_node_group_grows_and_shrinks(write: Write) -> None:
    """It adds the nodes that the pending pods need, after the delay; nodes that were empty for long are removed."""
    spec = f"""duration: 2h
nodeGroups: [{{name: g, template: {{cpu: 2, memory: 8Gi}}, min: 1, max: 5, delay: 2m, idle: 5m}}]
arrivals: [{{name: p, times: [1m, 1m, 1m, 1m, 1m, 1m], run: 10m, {POD}}}]
"""
    with _built(read([write(spec)])) as simulation:
        simulation.run_for(100)
        assert len(list(simulation.objects("Node"))) == 1
        simulation.run_for(200)
        assert len(list(simulation.objects("Node"))) == 3
        assert simulation.pending_pods() == []
        simulation.run_for(3000)
        assert [node["metadata"]["name"] for node in simulation.objects("Node")] == ["g-2"]


def test_without_a_duration_the_run_lasts_until_all_jobs_end(tmp_path: Path) -> None:
    """A Job starts its last pods only when the first are done; Deployments run for ever and do not count."""
    job = {"completions": 4, "parallelism": 2, "template": template(run=60.0, restartPolicy="Never")}
    objects = [
        *nodes(2),
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": job},
        deployment("web", 2),
    ]
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    done = running.run(Prepared(read([str(path)])))
    assert (done.results["pods"]["created"], done.results["pods"]["succeeded"]) == (6, 4)
    assert 120 < done.results["seconds"] < 180


def test_means_are_over_time(write: Write) -> None:
    """A pod uses half of the node for half of the time; the first and the last sample have no duration."""
    spec = f"""duration: 10m
sample: 5m
nodes: [{{count: 1, cpu: 2}}]
arrivals: [{{name: p, times: [299s], run: 1h, {POD}}}]
"""
    means = running.run(Prepared(read([write(spec)]))).results["utilisation"]
    assert means["cpu"]["mean"] == pytest.approx(0.25, abs=0.01)


def test_without_a_duration_node_groups_come_to_rest(write: Write) -> None:
    """Pods wait for their nodes, run, and the nodes are removed; nodes that arrive at a scan are not ordered twice."""
    spec = f"""nodes: [{{count: 1, cpu: 1}}]
nodeGroups: [{{name: burst, template: {{cpu: 100}}, min: 0, max: 2, delay: 2m, idle: 5m}}]
arrivals: [{{name: batch, times: [0s, 1s], run: 3m, {POD.replace("cpu: 1", "cpu: 99")}}}]
"""
    done = running.run(Prepared(read([write(spec)])))
    assert done.results["pods"]["succeeded"] == 2
    assert (done.results["utilisation"]["nodes"]["max"], done.measures.samples[-1].nodes) == (3, 1)
    assert 600 < done.results["seconds"] < 1200


def test_a_run_that_does_not_settle_is_noted(write: Write) -> None:
    """A longer run than an hour after the last event needs a duration."""
    spec = f"nodes: [{{count: 1}}]\narrivals: [{{name: p, times: [0s], run: 3h, {POD}}}]\n"
    done = running.run(Prepared(read([write(spec)])))
    assert done.results["notes"] == ["The simulation had not settled an hour after the last event; set spec.duration."]
    assert running.run(Prepared(read([write(spec + "duration: 4h\n")]))).results["notes"] == []


def test_pods_that_never_get_a_node_have_waited_until_the_end(write: Write) -> None:
    """Otherwise a full cluster would have the shortest waits."""
    spec = f"duration: 10m\nnodes: [{{count: 1, cpu: 1}}]\narrivals: [{{name: p, times: [0s, 0s], run: 1h, {POD}}}]\n"
    waits = running.run(Prepared(read([write(spec)]))).results["waits"]
    assert waits["p50"] < 1 < 590 < waits["max"] <= 606


@pytest.mark.parametrize("made", ["2025-11-16T12:00:00Z", "2031-11-16T12:00:00Z"])
def test_objects_of_a_cluster_are_older_than_the_simulation(made: str, tmp_path: Path, write: Write) -> None:
    """Time starts after the creation of the youngest: pods on a failed node are replaced, however young they are."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}
    body = template(labels={"app": "web"})
    lost = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    replicas = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": body}
    items = [
        *nodes(2),
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "r"}, "spec": replicas},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**body["metadata"], "name": "web-1", "uid": "p", "ownerReferences": [owner]},
            "spec": {**body["spec"], "nodeName": "node-0", "tolerations": lost},
            "status": {"phase": "Running"},
        },
    ]
    for one in items:
        one["metadata"]["creationTimestamp"] = made
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    path = write("include: [cluster.json]\nduration: 20m\nevents: [{at: 5m, fail: {names: [node-0]}}]\n")
    assert running.run(Prepared(read([path]))).results["pods"]["created"] == 1


def test_a_fork_has_arrivals_of_its_own(write: Write) -> None:
    """The same pods arrive in the fork and in the original, without affecting each other."""
    spec = f"nodes: [{{cpu: 64}}]\narrivals: [{{name: p, poisson: {{every: 5s}}, until: 5m, {POD}}}]"
    with _built(read([write(spec)])) as simulation:
        simulation.run_for(60)
        with simulation.fork() as fork:
            fork.run_for(120)
            names = fork.pod_names()
        simulation.run_for(120)
        assert sorted(simulation.pod_names()) == sorted(names)


def _folder(scenario: str, out: Path, hash_seed: str) -> dict[str, bytes]:
    subprocess.run(
        [sys.executable, "-m", "kubestow", "simulate", scenario, "--out", str(out)],
        check=True,
        capture_output=True,
        env={"PYTHONHASHSEED": hash_seed, "PATH": ""},
    )
    return {file.name: file.read_bytes() for file in out.iterdir()}


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    """In processes with different hash seeds."""
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    first, second = (_folder(str(tmp_path / "s.yaml"), tmp_path / one, one) for one in ("1", "2"))
    assert first == second
    assert {"report.html", "results.json", "samples.csv", "decisions.jsonl"} <= first.keys()


def test_the_command_writes_a_folder(tmp_path: Path) -> None:
    """Summary on the terminal; report, results, samples and decisions in the folder."""
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    out = tmp_path / "out"
    ran = CliRunner().invoke(main, ["simulate", str(tmp_path / "s.yaml"), "--seed", "7", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("Simulated 2 h (seed 7).\nPods: ")
    results = msgspec.json.decode((out / "results.json").read_bytes())
    decisions = (out / "decisions.jsonl").read_bytes().splitlines()
    assert results["pods"]["attempts"] == len(decisions)
    assert msgspec.json.decode(decisions[0])["outcome"] == "scheduled"
    samples = list(csv.DictReader((out / "samples.csv").read_text().splitlines()))
    assert [float(one["time"]) for one in samples] == [0.005, *(60.0 * number for number in range(1, 121))]
    page = (out / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") >= 6
    assert "<h1>example</h1>" in page
    labels = re.findall(r'y="214" text-anchor="\w+">([^<]*)</text>', page)
    assert labels[:5] == ["0", "30 min", "1 h", "1.5 h", "2 h"]


@pytest.mark.parametrize(
    ("spec", "sentences", "charts"),
    [
        ("duration: 1h\n", ("There were no nodes.", "No pod was pending at", "No pod was bound."), 0),
        ("duration: 1h\nnodes: [{count: 1, cpu: 4, memory: 8Gi}]\n", ("No pod was pending at", "No pod was bound."), 2),
        ("duration: 0.001\nnodes: [{count: 1, cpu: 4, memory: 8Gi}]\n", ("was too short for samples.",), 0),
    ],
)
def test_a_report_has_sentences_in_place_of_flat_charts(
    spec: str, sentences: tuple[str, ...], charts: int, write: Write, tmp_path: Path
) -> None:
    """Where nothing was measured."""
    running.run(Prepared(read([write(spec)])), tmp_path / "out", name="file.yaml")
    page = (tmp_path / "out" / "report.html").read_text()
    for sentence in sentences:
        assert sentence in page
    assert page.count("<polyline") == charts


def test_pods_that_wait_from_the_start_are_measured(write: Write) -> None:
    """Their wait starts with the run; the first sample has the initial state; a deleted pod has not failed."""
    spec = """duration: 1h
nodes: [{name: late, cpu: 4, memory: 8Gi}]
events:
- {at: 0, cordon: {names: [late]}}
- {at: 20m, uncordon: {names: [late]}}
- {at: 30m, delete: {kind: Pod, name: p}}
"""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
    done = running.run(Prepared(read([write(spec), write("", "p.yaml", head=pod)])))
    pods = done.results["pods"]
    assert (pods["created"], pods["bound"], pods["deleted"], pods["failed"]) == (1, 1, 1, 0)
    assert done.results["waits"]["max"] > 1190
    assert done.results["utilisation"]["nodes"]["mean"] == 1


def test_samples_of_a_long_run_are_few(write: Write) -> None:
    """One per minute for a day, but not for half a year, unless configured."""
    assert Prepared(read([write("duration: 24h")])).sample == 60
    assert Prepared(read([write("duration: 4320h")])).sample == 10_800
    assert Prepared(read([write("duration: 4320h\nsample: 60s")])).sample == 60


def test_samples_between_nanoseconds_end(write: Write) -> None:
    """Three times 0.1 is more than 0.3, and a third of a second is no integral number of nanoseconds."""
    for often in (0.1, 1 / 3):
        done = running.run(Prepared(read([write(f"nodes: [{{}}]\nduration: 10s\nsample: {often}")])))
        wanted = [round(often * number, 3) for number in range(1, round(10 / often) + 1)]
        assert [one.time for one in done.measures.samples[1:]] == wanted


def test_samples_are_written_as_parquet_too(tmp_path: Path) -> None:
    """With the rows and columns of samples.csv."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'kubestow[parquet]'")
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    running.run(Prepared(read([str(tmp_path / "s.yaml")])), tmp_path)
    rows = parquet.read_table(tmp_path / "samples.parquet").to_pylist()
    lines = list(csv.DictReader((tmp_path / "samples.csv").read_text().splitlines()))
    assert [{name: str(value) for name, value in row.items()} for row in rows] == lines
    assert len(lines) == 121


def test_an_interrupted_run_reports_what_ran(tmp_path: Path) -> None:
    """Ctrl-C: results until then, marked as incomplete."""
    (tmp_path / "s.yaml").write_text(EXAMPLE)

    def interrupt(seconds: float, end: float, bound: int) -> None:
        if seconds > 600:
            raise KeyboardInterrupt

    done = running.run(Prepared(read([str(tmp_path / "s.yaml")])), tmp_path / "out", interrupt)
    assert not done.results["complete"]
    assert 600 < done.results["seconds"] < 1000
    assert (tmp_path / "out" / "results.json").read_bytes() == as_json(done.results)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error of the system does not name it; no file is left."""
    with pytest.raises(OSError, match="No space left on device") as caught, atomic_file(tmp_path / "results.json"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []


def test_percentiles_are_exact_to_one_percent() -> None:
    """For any number of values, in little memory."""
    seen = Distribution()
    for number in range(1, 10_001):
        seen.add(number / 100)
    assert seen.percentile(50) == pytest.approx(50, rel=0.011)
    assert seen.percentile(99) == pytest.approx(99, rel=0.011)
    assert seen.summary()["max"] == 100

"""How many more pods fit, what stops the next one, what a node more would add, and how full the cluster is."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kubestow.apiserver.kubelets.description import Taint
from kubestow.cli import main
from kubestow.cli.simulate_process import problems
from simulator.conftest import nodes, pod

Object = dict[str, Any]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Two nodes of 2 cores and one of 4 that is tainted; one pod runs, one waits."""
    running = pod("running", "500m")
    running["metadata"]["namespace"] = "shop"
    objects = [*nodes(2, cpu=2, memory="8Gi", name="small-{}")]
    objects += nodes(1, cpu=4, memory="8Gi", name="big-{}", taints=[Taint("gpu", "NoSchedule")])
    running["spec"]["nodeName"] = "small-0"
    running["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1", "memory": "2Gi"}
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([*objects, running, pod("waiting", "1")]))
    return str(path)


def _podspec(tmp_path: Path, *pods: Object) -> str:
    path = tmp_path / "pods.yaml"
    path.write_text(yaml.safe_dump_all(pods))
    return str(path)


def _run(*args: str) -> Result:
    return CliRunner().invoke(main, ["capacity", *args])


def _json(*args: str) -> Object:
    ran = _run(*args, "-o", "json")
    assert ran.exit_code == 0, ran.output
    tree: Object = msgspec.json.decode(ran.output)
    return tree


def test_how_many_fit_in_the_fields_of_cluster_capacity(cluster: str, tmp_path: Path) -> None:
    """Replicas, where they go, why no more, and on how many nodes each reason holds."""
    status = _json("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "600m")))["status"]
    assert status["replicas"] == 5
    placed = {one["nodeName"]: one["replicas"] for one in status["pods"][0]["replicasOnNodes"]}
    assert placed == {"small-0": 2, "small-1": 3}
    assert status["failReason"]["failType"] == "Unschedulable"
    assert "2 Insufficient cpu" in status["failReason"]["failMessage"]
    reasons = {one["reason"]: one["count"] for one in status["pods"][0]["failSummary"]}
    assert reasons["Insufficient cpu"] == 2
    assert len(reasons) == 2


def test_what_stops_the_next_one_and_what_a_node_more_adds(cluster: str, tmp_path: Path) -> None:
    """Per plugin and kind of node."""
    status = _json("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "600m")))["status"]
    refusals = {(one["plugin"], one["kind"], one["nodes"]) for one in status["refusals"]}
    assert refusals == {("NodeResourcesFit", "2 CPU, 8Gi", 2), ("TaintToleration", "4 CPU, 8Gi", 1)}
    assert status["oneMoreNode"] == {"2 CPU, 8Gi": 3, "4 CPU, 8Gi": 0}


def test_a_mix_is_placed_in_turns(cluster: str, tmp_path: Path) -> None:
    """One of each, until one of them cannot be placed; a pod that tolerates the taint has room longer."""
    bold = pod("bold", "1", tolerations=[{"key": "gpu", "operator": "Exists"}])
    review = _json("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "1"), bold))
    counts = {one["podName"]: sum(n["replicas"] for n in one["replicasOnNodes"]) for one in review["status"]["pods"]}
    assert review["status"]["replicas"] == sum(counts.values())
    assert abs(counts["web"] - counts["bold"]) <= 1


def test_the_limit_is_kept_and_nodes_can_be_left_out(cluster: str, tmp_path: Path) -> None:
    """--max-limit and --exclude-nodes."""
    spec = _podspec(tmp_path, pod("web", "600m"))
    limited = _json("--cluster", cluster, "--podspec", spec, "--max-limit", "2")
    assert limited["spec"]["replicas"] == limited["status"]["replicas"] == 2
    assert limited["status"]["failReason"]["failType"] == "LimitReached"
    assert _json("--cluster", cluster, "--podspec", spec, "--exclude-nodes", "small-1")["status"]["replicas"] == 2


def test_the_answer_in_words(cluster: str, tmp_path: Path) -> None:
    """One line for each thing that matters."""
    ran = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "600m")), "--verbose")
    lines = ran.output.splitlines()
    assert lines[0] == "5 more pods fit: web"
    assert "       3 of web on small-1" in lines
    assert "       2 x 2 CPU, 8Gi: Insufficient cpu (NodeResourcesFit)" in lines
    assert "One more node of 2 CPU, 8Gi would add 3." in lines


def _gang(name: str, least: int, key: str = "") -> Object:
    spec: Object = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def test_how_many_more_gangs_fit(cluster: str, tmp_path: Path) -> None:
    """Whole ones only: there is room for five pods, which is two gangs of two; one on one node takes less room."""
    worker = pod("worker", "600m", schedulingGroup={"podGroupName": "train"})
    spec = _podspec(tmp_path, _gang("train", 2), worker)
    lines = _run("--cluster", cluster, "--podspec", spec).output.splitlines()
    assert lines[0] == "2 more gangs fit: train"
    assert lines[1].startswith("What stops the next train: ")
    assert lines[2:] == ["One more node of 2 CPU, 8Gi would add 2.", "One more node of 4 CPU, 8Gi would add 0."]
    spec = _podspec(tmp_path, _gang("train", 2, "kubernetes.io/hostname"), worker)
    placed = _json("--cluster", cluster, "--podspec", spec)["status"]["pods"][0]["replicasOnNodes"]
    assert placed == [{"nodeName": "small-0", "replicas": 2}, {"nodeName": "small-1", "replicas": 2}]
    assert _json("--cluster", cluster, "--podspec", spec, "--max-limit", "1")["status"]["replicas"] == 1


def test_a_pod_group_without_its_pod_is_refused(cluster: str, tmp_path: Path) -> None:
    """In one line that says what is needed."""
    ran = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, _gang("train", 2), pod("web", "1")))
    said = "Error: --podspec: a pod group must be one gang, with one pod that names it in schedulingGroup"
    assert (ran.exit_code, ran.stderr.splitlines()) == (1, [said])


def test_headroom_in_the_columns_of_kube_capacity(cluster: str) -> None:
    """Requests and limits with percentages, by node, by node group and by namespace; finished and waiting pods not."""
    lines = _run("--cluster", cluster, "--pods").output.splitlines()
    assert lines[0].split("   ")[0] == "NODE"
    assert lines[0].split() == ["NODE", "CPU", "REQUESTS", "CPU", "LIMITS", "MEMORY", "REQUESTS", "MEMORY", "LIMITS"]
    assert lines[1].split() == ["*", "500m", "(6%)", "1000m", "(12%)", "1024Mi", "(4%)", "2048Mi", "(8%)"]
    small = next(line for line in lines if line.startswith("small-0"))
    assert small.split() == ["small-0", "500m", "(25%)", "1000m", "(50%)", "1024Mi", "(12%)", "2048Mi", "(25%)"]
    assert any(line.split()[0] == "shop/running" for line in lines if line.startswith("  "))
    assert any(line.startswith("NAMESPACE") for line in lines)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--podspec", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("--cluster", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("--podspec", "{nodes}"), "has no pod"),
    ],
)
def test_files_that_do_not_serve_are_named(cluster: str, tmp_path: Path, args: tuple[str, str], problem: str) -> None:
    """With exit code 1."""
    other = tmp_path / "nodes.yaml"
    other.write_text(yaml.safe_dump_all(nodes(1)))
    given = [one.replace("{nodes}", str(other)) for one in args]
    ran = _run(*given, *(() if "--cluster" in given else ("--cluster", cluster)))
    assert ran.exit_code == 1
    assert problem in ran.output


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    """As in `kubestow capacity | head`."""
    with pytest.raises(BrokenPipeError), problems():
        raise BrokenPipeError

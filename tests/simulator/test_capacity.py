"""Capacity: how many more pods fit, what stops the next one, what one more node would add; and headroom."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from kubestow.apiserver.kubelets.description import Taint
from kubestow.cli import main
from kubestow.cli.simulate.process import problems
from kubestow.simulator.utilization import Utilization
from support.simulator.objects import nodes, pod

Object = dict[str, Any]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Two nodes of 2 cores and a tainted one of 4; one pod is running, one is pending."""
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
    """Replicas, their nodes, the reasons against more, and the number of nodes for each reason."""
    status = _json("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "600m")))["status"]
    assert status["replicas"] == 5
    placed = {one["nodeName"]: one["replicas"] for one in status["pods"][0]["replicasOnNodes"]}
    assert placed == {"small-0": 2, "small-1": 3}
    assert status["failReason"]["failType"] == "Unschedulable"
    assert "2 Insufficient cpu" in status["failReason"]["failMessage"]
    reasons = {one["reason"]: one["count"] for one in status["pods"][0]["failSummary"]}
    assert reasons["Insufficient cpu"] == 2
    assert len(reasons) == 2


def test_reasons_and_the_effect_of_one_more_node(cluster: str, tmp_path: Path) -> None:
    """Per plugin and kind of node."""
    status = _json("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "600m")))["status"]
    refusals = {(one["plugin"], one["kind"], one["nodes"]) for one in status["refusals"]}
    assert refusals == {("NodeResourcesFit", "2 CPU, 8Gi", 2), ("TaintToleration", "4 CPU, 8Gi", 1)}
    assert status["oneMoreNode"] == {"2 CPU, 8Gi": 3, "4 CPU, 8Gi": 0}


def test_a_mix_is_placed_in_turns(cluster: str, tmp_path: Path) -> None:
    """One of each, until one of them cannot be placed; a pod that tolerates the taint fits longer."""
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


def test_text_output(cluster: str, tmp_path: Path) -> None:
    """One line for each fact."""
    ran = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, pod("web", "600m")), "--verbose")
    lines = ran.output.splitlines()
    assert lines[0] == "5 more pods fit: web"
    assert "       3 of web on small-1" in lines
    assert "       2 x 2 CPU, 8Gi: Insufficient cpu (NodeResourcesFit)" in lines
    (stops,) = (line for line in lines if line.startswith("The next web does not fit: "))
    assert stops.endswith(": 1 node(s) had untolerated taint(s), 2 Insufficient cpu.")
    assert "One more node of 2 CPU, 8Gi would add 3." in lines


def _gang(name: str, least: int, key: str = "") -> Object:
    spec: Object = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def test_how_many_more_gangs_fit(cluster: str, tmp_path: Path) -> None:
    """Only whole gangs: five pods fit, which is two gangs of two; a gang on one node needs less."""
    worker = pod("worker", "600m", schedulingGroup={"podGroupName": "train"})
    spec = _podspec(tmp_path, _gang("train", 2), worker)
    lines = _run("--cluster", cluster, "--podspec", spec).output.splitlines()
    assert lines[0] == "2 more gangs fit: train"
    assert lines[1].startswith("The next train does not fit: 0/3 nodes are available: ")
    assert "reempt" not in lines[1]
    assert lines[2:] == ["One more node of 2 CPU, 8Gi would add 2.", "One more node of 4 CPU, 8Gi would add 0."]
    spec = _podspec(tmp_path, _gang("train", 2, "kubernetes.io/hostname"), worker)
    placed = _json("--cluster", cluster, "--podspec", spec)["status"]["pods"][0]["replicasOnNodes"]
    assert placed == [{"nodeName": "small-0", "replicas": 2}, {"nodeName": "small-1", "replicas": 2}]
    assert _json("--cluster", cluster, "--podspec", spec, "--max-limit", "1")["status"]["replicas"] == 1


_IN_TRAIN = {"podGroupName": "train"}


def test_a_pod_group_without_its_pod_is_rejected(cluster: str, tmp_path: Path) -> None:
    """In one line that says what is required."""
    ran = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, _gang("train", 2), pod("web", "1")))
    part = _gang("train", 2)
    part["spec"]["parentCompositePodGroupName"] = "top"
    of_tree = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, part, pod("w", schedulingGroup=_IN_TRAIN)))
    assert "--podspec: a gang is placed alone: remove spec.parentCompositePodGroupName" in of_tree.output
    message = "Error: --podspec: a pod group must be one gang, with one pod that names it in schedulingGroup"
    assert (ran.exit_code, ran.stderr.splitlines()) == (1, [message])


def _cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)


def test_headroom_in_the_columns_of_kube_capacity(cluster: str) -> None:
    """Requests and limits with percentages, by node, node group and namespace; only running pods count."""
    lines = _run("--cluster", cluster, "--pods").output.splitlines()
    assert lines[0].split("   ")[0] == "NODE"
    assert lines[0].split() == ["NODE", "CPU", "REQUESTS", "CPU", "LIMITS", "MEMORY", "REQUESTS", "MEMORY", "LIMITS"]
    assert _cells(lines[1]) == ["*", "0.5 cores (6 %)", "1 core (12 %)", "1 GiB (4 %)", "2 GiB (8 %)"]
    small = next(line for line in lines if line.startswith("small-0"))
    assert _cells(small) == ["small-0", "0.5 cores (25 %)", "1 core (50 %)", "1 GiB (12 %)", "2 GiB (25 %)"]
    assert any(line.split()[0] == "shop/running" for line in lines if line.startswith("  "))
    assert any(line.startswith("NAMESPACE") for line in lines)


@pytest.mark.parametrize(
    ("use", "cells"),
    [
        (Utilization("n", 0, 0), ("0 cores", "0 cores", "0 B", "0 B")),
        (
            Utilization("n", 1_610_000, 1 << 40, 1_288_200, 1, 950 << 30, 1 << 20),
            ("1,288 cores (80 %)", "0.001 cores (<1 %)", "950 GiB (92 %)", "1 MiB (<1 %)"),
        ),
        (
            Utilization("n", 10_000, 1 << 30, 9_999, 12_500, (1 << 30) - 1, 3 << 29),
            ("10 cores (99 %)", "12.5 cores (125 %)", "1,024 MiB (99 %)", "1.5 GiB (150 %)"),
        ),
    ],
)
def test_amounts_are_rounded_for_people(use: Utilization, cells: tuple[str, ...]) -> None:
    """Percentages are rounded down, so that 100 % is full."""
    assert use.cells() == cells


def test_nodes_are_listed_in_natural_order(tmp_path: Path) -> None:
    """In the table, and where pods fit."""
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    found = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n-{number}"},
            "status": {"allocatable": allocatable},
        }
        for number in (10, 9, 100)
    ]
    cluster = tmp_path / "cluster.json"
    cluster.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": found}))
    table = [line.split()[0] for line in _run("--cluster", str(cluster)).output.splitlines() if line.startswith("n-")]
    fits = _run("--cluster", str(cluster), "--podspec", _podspec(tmp_path, pod("web", "600m")), "--verbose").output
    assert table == re.findall(r"web on (\S+)", fits) == ["n-9", "n-10", "n-100"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--podspec", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("--cluster", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("--podspec", "{nodes}"), "has no pod"),
    ],
)
def test_unusable_files_are_named(cluster: str, tmp_path: Path, args: tuple[str, str], problem: str) -> None:
    """With exit code 1."""
    other = tmp_path / "nodes.yaml"
    other.write_text(yaml.safe_dump_all(nodes(1)))
    given = [one.replace("{nodes}", str(other)) for one in args]
    ran = _run(*given, *(() if "--cluster" in given else ("--cluster", cluster)))
    assert ran.exit_code == 1
    assert problem in ran.output


def test_a_closed_pipe_is_not_an_error() -> None:
    """As in `kubestow capacity | head`."""
    with pytest.raises(BrokenPipeError), problems():
        raise BrokenPipeError


def test_an_unknown_excluded_node_is_reported(cluster: str) -> None:
    """On standard error, so that the output for programs is unchanged."""
    ran = _run("--cluster", cluster, "--exclude-nodes", "small-0, smal-1", "-o", "json")
    assert ran.stderr == "Warning: --exclude-nodes: there is no node smal-1\n"
    assert [node["name"] for node in msgspec.json.decode(ran.stdout)["nodes"]] == ["big-0", "small-1"]


def test_allocatable_defaults_to_capacity(tmp_path: Path) -> None:
    """As defaulted by the API server; for explain as well."""
    (node,) = nodes(1, cpu=3)
    del node["status"]["allocatable"]
    path, spec = tmp_path / "node.yaml", _podspec(tmp_path, pod("web", "1"))
    path.write_text(yaml.safe_dump(node))
    assert _json("--cluster", str(path), "--podspec", spec)["status"]["replicas"] == 3
    ran = CliRunner().invoke(main, ["explain", "-f", spec, "--cluster", str(path)])
    assert ran.output.startswith("Pod default/web would go to node-0.\n")


def test_a_cluster_without_nodes_is_reported(tmp_path: Path) -> None:
    """It is probably the wrong file."""
    spec = _podspec(tmp_path, pod("web", "1"))
    assert _run("--cluster", spec).stderr == f"Warning: {spec}: has no nodes\n"


_SCENARIO = """
apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  nodes: [{count: 2, name: "small-{}", cpu: 2}]
  nodeGroups: [{name: burst, template: {cpu: 4}, min: 1}]
  arrivals: [{name: later, pod: {spec: {containers: [{name: c, image: i}]}}, times: [5s]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 7
---
apiVersion: v1
kind: Pod
metadata: {name: running}
spec: {nodeName: small-0, containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """Two nodes, one of a group, and a pod."""
    (tmp_path / "scenario.yaml").write_text(_SCENARIO)
    return str(tmp_path / "scenario.yaml")


def test_a_scenario_stands_for_its_initial_cluster(scenario: str, tmp_path: Path) -> None:
    """Its nodes, the minimum of its groups' nodes, and its objects; for explain as well."""
    wanted = pod("web", "1", priorityClassName="high")
    spec = _podspec(tmp_path, wanted)
    status = _json("--cluster", scenario, "--podspec", spec)["status"]
    placed = {one["nodeName"]: one["replicas"] for one in status["pods"][0]["replicasOnNodes"]}
    assert placed == {"small-1": 2, "burst-0": 4}
    ran = CliRunner().invoke(main, ["explain", "-f", spec, "--cluster", scenario, "-o", "json"])
    decision = msgspec.json.decode(ran.output)
    assert (decision["nodeCount"], decision["feasible"], decision["priority"]) == (3, 2, 7)


def _maker(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template: dict[str, Any] = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {**spec, "template": template}}


@pytest.mark.parametrize("has_scenario", [True, False])
def test_workloads_without_pods_are_reported(has_scenario: bool, scenario: str, tmp_path: Path) -> None:
    """No controller creates the pods of a Deployment in a file, so it uses no capacity, which may be unexpected."""
    there = pod("there-1", "1")
    there["metadata"]["labels"] = {"app": "there"}
    seen = _maker("Deployment", "seen")
    seen["metadata"]["uid"] = "u"
    objects = [
        *(_maker("Deployment", "a"), _maker("Deployment", "b", replicas=2), _maker("Deployment", "none", replicas=0)),
        *(_maker("Job", "c"), _maker("Job", "later", suspend=True), _maker("DaemonSet", "d")),
        *(_maker("StatefulSet", "there"), there, seen),
    ]
    path = Path(scenario) if has_scenario else tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all([*(yaml.safe_load_all(_SCENARIO) if has_scenario else nodes(1)), *objects]))
    ran = _run("--cluster", str(path))
    message = f"Warning: {path}: {{}} use no resources, because their pods are missing: add the pods"
    counts = ["1 of kind DaemonSet", "2 of kind Deployment", "1 of kind Job"]
    assert ran.stderr.splitlines() == [message.format(count) for count in counts]


@pytest.mark.parametrize("command", [["capacity"], ["explain", "-f", "{spec}"]])
def test_an_invalid_scenario_is_reported_as_in_a_simulation(command: list[str], scenario: str, tmp_path: Path) -> None:
    """With file, line and field; standard input is named as such."""
    spec = _podspec(tmp_path, pod("web", "1"))
    arguments = [one.replace("{spec}", spec) for one in command]
    ran = CliRunner().invoke(main, [*arguments, "--cluster", "-"], input=_SCENARIO)
    assert ran.stderr == "Error: standard input: a Scenario cannot be read from standard input here: name its file\n"
    Path(scenario).write_text(_SCENARIO.replace("cpu: 2", "cpu: -2"))
    ran = CliRunner().invoke(main, [*arguments, "--cluster", scenario])
    assert (ran.exit_code, ran.stderr) == (1, f"Error: {scenario}: line 5: spec.nodes[0].cpu: must not be negative\n")


@pytest.mark.parametrize("command", [["capacity"], ["capacity", "--podspec", "{spec}"], ["explain", "-f", "{spec}"]])
@pytest.mark.parametrize(
    ("amount", "problem"), [("-4", "-4 is negative"), ("much", "quantity 'much': not a number with an optional suffix")]
)
def test_negative_resources_are_rejected(command: list[str], amount: str, problem: str, tmp_path: Path) -> None:
    """For every command that reads it, with file, node and field, with or without a UID."""
    (node,) = nodes(1)
    node["metadata"]["uid"] = "u"
    node["status"]["allocatable"]["cpu"] = amount
    path = tmp_path / "node.yaml"
    path.write_text(yaml.safe_dump(node))
    spec = _podspec(tmp_path, pod("web", "1"))
    ran = CliRunner().invoke(main, [*(one.replace("{spec}", spec) for one in command), "--cluster", str(path)])
    assert ran.exit_code == 1
    assert f"Error: {path}: line 1: Node node-0: status.allocatable.cpu: {problem}" in ran.stderr


@pytest.mark.parametrize("uid", [{}, {"uid": "u"}], ids=["written", "from a cluster"])
def test_a_simulation_rejects_a_node_with_negative_resources(uid: Object, tmp_path: Path) -> None:
    """With the API server's message."""
    (node,) = nodes(1)
    node["metadata"] |= uid
    node["status"]["allocatable"]["cpu"] = "-4"
    path = tmp_path / "node.yaml"
    path.write_text(yaml.safe_dump(node))
    ran = CliRunner().invoke(main, ["simulate", str(path)])
    text = 'status.allocatable.cpu: Invalid value: "-4": must be greater than or equal to 0'
    assert (ran.exit_code, ran.stderr) == (1, f'Error: {path}: line 1: Node node-0: Node "node-0" is invalid: {text}\n')


@pytest.mark.parametrize(
    ("invalid", "problem"),
    [
        ({"containerz": []}, 'strict decoding error: unknown field "spec.containerz"'),
        ({"containers": []}, "spec.containers: Required value"),
        ({"nodeSelector": {"a": ["b"]}}, "spec.nodeSelector.a: must be a string, not a list"),
        ({"schedulerName": "other"}, "spec.schedulerName: is 'other', and the configuration has only default-sched"),
    ],
)
def test_an_invalid_pod_is_rejected(cluster: str, tmp_path: Path, invalid: Object, problem: str) -> None:
    """With name and field; also a pod with an unknown schedulerName."""
    one = pod("web", "1")
    one["spec"] |= invalid
    ran = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, one))
    assert (ran.exit_code, len(ran.stderr.splitlines())) == (1, 1)
    assert "Pod web: " in ran.stderr
    assert problem in ran.stderr


def test_a_generated_name_is_completed(cluster: str, tmp_path: Path) -> None:
    """Random letters are appended, as by the API server."""
    one = pod("web", "600m")
    one["metadata"]["generateName"] = one["metadata"].pop("name") + "-"
    lines = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, one)).output.splitlines()
    assert lines[0] == "5 more pods fit: web-xxxxx"
    assert lines[1].startswith("The next web-xxxxx does not fit: 0/3 nodes")


def test_ignored_objects_of_a_podspec_are_reported(cluster: str, tmp_path: Path) -> None:
    """Only pods are placed."""
    ran = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, *nodes(1), pod("web", "600m")))
    warning = "ignored 1 of kind Node; only pods, pod groups and claim templates are used"
    assert ran.stderr == f"Warning: --podspec: {warning}\n"
    assert ran.stdout.startswith("5 more pods fit: web\n")


def test_the_plugin_that_gates_a_pod_is_named(cluster: str, tmp_path: Path) -> None:
    """The reason does not concern nodes."""
    gated = pod("web", "1", schedulingGates=[{"name": "example.com/quota"}])
    lines = _run("--cluster", cluster, "--podspec", _podspec(tmp_path, gated)).output.splitlines()
    assert lines[1] == (
        "The next web does not fit: waiting for scheduling gates: [example.com/quota] (SchedulingGates)"
    )


_FAILING = """
class Failing:
    name = "Failing"

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node):
        raise RuntimeError("boom")
"""
_WITH_IT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Failing}]}}}]
"""


def test_a_failing_plugin_stops_the_pod(cluster: str, tmp_path: Path) -> None:
    """The command itself does not fail."""
    (tmp_path / "failing.py").write_text(_FAILING)
    (tmp_path / "config.yaml").write_text(_WITH_IT)
    spec = _podspec(tmp_path, pod("web", "1"))
    own = ("--config", str(tmp_path / "config.yaml"), "--plugin", str(tmp_path / "failing.py"))
    status = _json("--cluster", cluster, "--podspec", spec, *own)["status"]
    assert status["failReason"]["failMessage"] == 'running Filter plugin "Failing": boom'


def test_reasons_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    """A cluster may have more kinds of nodes than a screen has lines."""
    many = [node for number in range(1, 13) for node in nodes(1, cpu=number, name=f"n{number}")]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(many))
    lines = _run("--cluster", str(path), "--podspec", _podspec(tmp_path, pod("web", "20"))).output.splitlines()
    assert lines[12] == "  ... and 2 more reasons; -o json shows all"


def test_repeated_objects_count_once(cluster: str) -> None:
    """As in the output of `kubectl get pods,all`."""
    assert (
        _run("--cluster", cluster, "--cluster", cluster, "--pods").output == _run("--cluster", cluster, "--pods").output
    )


DRIVER = "d.example.com"
RESOURCE = "resource.k8s.io/v1"


def _offered(node: str, devices: int) -> Object:
    """Return a slice with the devices of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": f"d{n}"} for n in range(devices)]}
    return {"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": {"name": f"slice-{node}"}, "spec": spec}


def _template(count: int = 1, expression: str = "true") -> Object:
    """Return a ResourceClaimTemplate for devices."""
    asked = {"deviceClassName": "c", "count": count, "selectors": [{"cel": {"expression": expression}}]}
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": asked}]}}}
    return {"apiVersion": RESOURCE, "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": spec}


CLASS: Object = {
    "apiVersion": RESOURCE,
    "kind": "DeviceClass",
    "metadata": {"name": "c"},
    "spec": {"extendedResourceName": "example.com/gpu"},
}
CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "t"}]


@pytest.fixture
def offering(tmp_path: Path) -> str:
    """Nodes with five and three devices, of which a pod has one; and a node without devices."""
    found = nodes(3, cpu=64, memory="64Gi", name="n-{}")
    for node, kind in zip(found, ("five", "three", "none"), strict=True):
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = kind
    result = {"request": "r", "driver": DRIVER, "pool": "n-0", "device": "d0"}
    user = pod("user", "1", resourceClaims=[{"name": "gpu", "resourceClaimName": "taken"}], nodeName="n-0")
    user["metadata"]["uid"] = "user-uid"
    taken: Object = {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"name": "taken"},
        "spec": _template()["spec"]["spec"],
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "user", "uid": "user-uid"}],
        },
    }
    path = tmp_path / "offering.yaml"
    path.write_text(yaml.safe_dump_all([*found, _offered("n-0", 5), _offered("n-1", 3), CLASS, user, taken]))
    return str(path)


def test_names_of_existing_pods_do_not_conflict(offering: str, tmp_path: Path) -> None:
    """Names of a StatefulSet's pods end with numbers, too; and claims of existing pods are not copied."""
    there = [pod(f"user-{number}", "1", nodeName="n-2") for number in (0, 1, 3)]
    more = tmp_path / "more.yaml"
    more.write_text(yaml.safe_dump_all(there))
    like = pod("user", "1", nodeName="n-0")
    like["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "taken", "requestMappings": []}}
    like["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
    asked = _podspec(tmp_path, like)
    status = _json("--cluster", offering, "--cluster", str(more), "--podspec", asked)["status"]
    assert status["replicas"] == 7
    assert status["oneMoreNode"] == {"five": 5, "three": 3, "none": 0}


@pytest.mark.parametrize(("count", "fit", "more"), [(1, 7, {"five": 5, "three": 3}), (2, 3, {"five": 2, "three": 1})])
def test_claims_are_created_from_templates(
    offering: str, tmp_path: Path, count: int, fit: int, more: dict[str, int]
) -> None:
    """As a controller creates them; one more node includes its devices."""
    asked = _podspec(tmp_path, pod("train", "1", resourceClaims=CLAIMS), _template(count))
    status = _json("--cluster", offering, "--podspec", asked)["status"]
    assert status["replicas"] == fit
    assert "3 cannot allocate all claims" in status["failReason"]["failMessage"]
    assert status["oneMoreNode"] == {**more, "none": 0}


def test_extended_resources_are_backed_by_devices(offering: str, tmp_path: Path) -> None:
    """The scheduler creates the claims, and they are deleted with the pods that were tried."""
    plain = pod("plain", "1")
    plain["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    plain["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    status = _json("--cluster", offering, "--podspec", _podspec(tmp_path, plain))["status"]
    assert status["replicas"] == 7
    assert status["oneMoreNode"] == {"five": 5, "three": 3, "none": 0}


def test_a_gang_with_claims(offering: str, tmp_path: Path) -> None:
    """Three pods, each with a device."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    member = pod("m", "1", resourceClaims=CLAIMS, schedulingGroup={"podGroupName": "g"})
    status = _json("--cluster", offering, "--podspec", _podspec(tmp_path, group, member, _template()))["status"]
    assert status["replicas"] == 2
    assert status["oneMoreNode"] == {"five": 2, "three": 1, "none": 0}


def test_the_template_may_be_in_the_cluster(offering: str, tmp_path: Path) -> None:
    """A missing template is reported, and so is an expression that no API server accepts."""
    asked = _podspec(tmp_path, pod("train", "1", resourceClaims=CLAIMS))
    with_template = tmp_path / "template.yaml"
    with_template.write_text(yaml.safe_dump(_template()))
    assert _json("--cluster", offering, "--cluster", str(with_template), "--podspec", asked)["status"]["replicas"] == 7
    ran = _run("--cluster", offering, "--podspec", asked)
    message = "Pod train: spec.resourceClaims[0].resourceClaimTemplateName: there is no ResourceClaimTemplate default/t"
    assert (ran.exit_code, message in ran.output) == (1, True)
    invalid = _podspec(tmp_path, pod("train", "1", resourceClaims=CLAIMS), _template(1, "device."))
    ran = _run("--cluster", offering, "--podspec", invalid)
    assert "selectors[0].cel.expression: Invalid value" in ran.output

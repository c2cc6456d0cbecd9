"""Files of other tools, created here in the format of each tool."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kubestow.api.files import ObjectsError
from kubestow.simulator.scenario.building import build
from kubestow.simulator.scenario.reading import read
from kubestow.simulator.simulation import Simulation
from support.simulator.objects import deployment, nodes, pod

Object = dict[str, Any]
Start = Callable[..., Simulation]


def _start(*paths: Path) -> Simulation:
    return build(read([str(path) for path in paths]), checked=True)


def _bound(one: Object, node: str) -> Object:
    return {**one, "spec": {**one["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def _nodes_file(folder: Path) -> Path:
    path = folder / "nodes.yaml"
    path.write_text(yaml.safe_dump_all(nodes(2)))
    return path


def test_a_snapshot_of_kube_scheduler_simulator(tmp_path: Path) -> None:
    """Objects by field, without kinds; pods keep their nodes."""
    bare = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in nodes(2)]
    classes = [{"metadata": {"name": "high"}, "value": 10}]
    pods = [_bound(pod("a"), "node-1"), pod("b", priorityClassName="high")]
    tree = {"pods": pods, "nodes": bare, "pvs": [], "pvcs": None,
            "storageClasses": [], "priorityClasses": classes, "schedulerConfig": None, "namespaces": []}  # fmt: skip
    (tmp_path / "snap.json").write_text(json.dumps(tree))
    with _start(tmp_path / "snap.json") as simulation:
        simulation.settle()
        assert simulation.node_of("a") == "node-1"
        assert simulation.node_of("b") in ("node-0", "node-1")
        assert simulation.get("Pod", "b")["spec"]["priority"] == 10  # type: ignore[index]


def test_a_record_of_kube_scheduler_simulator(tmp_path: Path) -> None:
    """Lines with times; bound pods are scheduled again."""
    lines = [("2026-05-01T10:00:00Z", "Add", one) for one in nodes(1)]
    lines += [("2026-05-01T10:00:05Z", "Add", pod("a")), ("2026-05-01T10:00:06Z", "Update", _bound(pod("a"), "gone"))]
    lines += [("2026-05-01T10:01:00Z", "Delete", _bound(pod("a"), "gone"))]
    text = "\n".join(json.dumps({"time": time, "event": event, "resource": one}) for time, event, one in lines)
    (tmp_path / "record.jsonl").write_text(text)
    with _start(tmp_path / "record.jsonl") as simulation:
        simulation.run_for(10)
        assert simulation.node_of("a") == "node-0"
        simulation.run_for(120)
        assert simulation.pod_names() == []


def test_a_recording_of_kwok(tmp_path: Path) -> None:
    """A snapshot, then patches with their time since the beginning."""

    def patch(resource: str, name: str, seconds: float, method: str, template: Any = None, **more: str) -> Object:
        return {"apiVersion": "action.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePatch",
                "resource": {"version": "v1", "resource": resource}, "target": {"name": name, **more},
                "durationNanosecond": int(seconds * 1e9), "method": method, "template": template}  # fmt: skip

    late = pod("late")
    late["metadata"]["creationTimestamp"] = "$(time-offset-nanosecond 5000000000)"
    documents = [*nodes(1), patch("pods", "late", 5, "create", late, namespace="default")]
    documents += [patch("nodes", "node-0", 10, "patch", {"metadata": {"labels": {"disk": "ssd"}}})]
    documents += [patch("pods", "late", 60, "delete", namespace="default")]
    (tmp_path / "kwok.yaml").write_text(yaml.safe_dump_all(documents))
    with _start(tmp_path / "kwok.yaml") as simulation:
        simulation.run_for(4)
        assert simulation.pod_names() == []
        simulation.run_for(10)
        assert simulation.node_of("late") == "node-0"
        labels = simulation.get("Node", "node-0")["metadata"]["labels"]  # type: ignore[index]
        assert labels["disk"] == "ssd"
        assert labels["kubernetes.io/hostname"] == "node-0"
        simulation.run_for(100)
        assert simulation.pod_names() == []


def _sktrace(version: int = 2) -> Object:
    bare = pod("bare", restartPolicy="Never")
    events = [{"ts": 1000, "applied_objs": [bare, deployment("web", 2)], "deleted_objs": []},
              {"ts": 1100, "applied_objs": [deployment("web", 4)], "deleted_objs": []}]  # fmt: skip
    lives = {("v1.Pod", "default/bare"): {7: [{"Finished": [1001, 1031]}]}}
    return {"version": version, "config": {}, "events": events, "index": {}, "pod_lifecycles": lives}


def test_a_trace_of_simkube(tmp_path: Path) -> None:
    """msgpack: objects are applied at their times, and pods run as long as recorded."""
    path = tmp_path / "t.sktrace"
    path.write_bytes(msgspec.msgpack.encode(_sktrace()))
    with _start(_nodes_file(tmp_path), path) as simulation:
        simulation.run_for(20)
        assert len(simulation.pod_names()) == 3
        simulation.run_for(30)
        assert len(simulation.pod_names()) == 2
        simulation.run_for(100)
        assert len(simulation.pod_names()) == 4


def test_a_config_of_open_simulator(tmp_path: Path) -> None:
    """It lists folders of YAML."""
    for name, objects in (("cluster", nodes(2)), ("app", [deployment("web", 3)])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.yaml").write_text(yaml.safe_dump_all(objects))
    spec = {"cluster": {"customConfig": "cluster"}, "appList": [{"name": "web", "path": "app"}], "newNode": "new"}
    config = {"apiVersion": "simon/v1alpha1", "kind": "Config", "metadata": {"name": "c"}, "spec": spec}
    (tmp_path / "simon.yaml").write_text(yaml.safe_dump(config))
    with _start(tmp_path / "simon.yaml") as simulation:
        simulation.settle()
        assert len(list(simulation.scheduled_pods())) == 3


OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,V100\nn2,96000,786432,1,T4\nn3,96000,786432,0,\n"
OPENB_COLUMNS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
OPENB_PODS = f"""{OPENB_COLUMNS},creation_time,deletion_time,scheduled_time
whole,4000,8192,2,1000,,LS,Running,0,100,10
share,1000,1024,1,500,T4,BE,Running,5,65,5
cpu,12000,16384,0,0,,LS,Succeeded,20,,20
"""


def test_the_openb_trace(tmp_path: Path) -> None:
    """Nodes with GPUs, and pods with shares of them and required models, with their arrivals and ends."""
    for name, text in (("nodes.csv", OPENB_NODES), ("pods.csv", OPENB_PODS)):
        (tmp_path / name).write_text(text)
    with _start(tmp_path / "nodes.csv", tmp_path / "pods.csv") as simulation:
        simulation.run_for(30)
        assert (simulation.node_of("whole"), simulation.node_of("share")) == ("n1", "n2")
        simulation.run_for(50)
        assert sorted(simulation.pod_names()) == ["default/cpu", "default/whole"]
        simulation.run_for(50)
        assert simulation.pod_names() == ["default/cpu"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.sktrace", msgspec.msgpack.encode(_sktrace(1)), "version: is 1; this program reads SimKube's version 2"),
        ("t.sktrace", msgspec.msgpack.encode(_sktrace())[:-40], "not a SimKube trace, or cut off"),
        ("pods.csv", OPENB_PODS.replace("4000", "many").encode(), "line 2: invalid literal"),
        ("pods.csv", OPENB_PODS.replace("Running,5", "Running,-5").encode(), "line 3: creation_time: must not be"),
        ("pods.csv", b"a,b\n1,2\n", "needs openb's columns"),
        ("r.json", b'{"time":"noon","event":"Add","resource":{}}', "time: 'noon' is not a time"),
        ("r.json", b'{"time":"2026-01-01T00:00:00Z","event":"Move","resource":{}}', "event: 'Move' is none of Add"),
        ("k.yaml", b"kind: ResourcePatch\nresource: {resource: pods}\ndurationNanosecond: -1\nmethod: create\n",
         "durationNanosecond: must be a number of nanoseconds"),
        ("s.yaml", b"apiVersion: simon/v1alpha1\nkind: Config\nspec: {cluster: {kubeConfig: x}}\n",
         "customConfig: is missing"),
    ],
)  # fmt: skip
def test_invalid_files_are_reported(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    """With the file, and the line or the field."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ObjectsError, match=f"{name}: .*{problem}"):
        read([str(tmp_path / name)])

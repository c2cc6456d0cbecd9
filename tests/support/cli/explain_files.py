"""Files for `kubestow explain`, and a way to run it."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kubestow.cli import main


def node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str = "1", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


class Files:
    """A folder with a cluster and a pod in it."""

    def __init__(self, folder: Path, *objects: dict[str, Any]) -> None:
        self.folder = folder
        self.cluster = self.write("cluster.json", {"apiVersion": "v1", "kind": "List", "items": list(objects)})

    def write(self, name: str, content: Any) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def explain(self, *arguments: str) -> Result:
        """Explain something in this cluster."""
        return run_explain(*arguments, "--cluster", self.cluster)

    def explain_pod(self, manifest: dict[str, Any], *arguments: str) -> Result:
        """Explain where a pod would go in this cluster."""
        return self.explain("-f", self.write("pod.json", manifest), *arguments)


def run_explain(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def refused(*arguments: str) -> list[str]:
    """Run it where it cannot work; returns what it says."""
    done = run_explain(*arguments)
    assert done.exit_code == 1, done.output
    assert done.stdout == ""
    return done.stderr.splitlines()


def gang(name: str, least: int, namespace: str = "ml", topology: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def workers(group: str, count: int, **spec: Any) -> list[dict[str, Any]]:
    member = {"schedulingGroup": {"podGroupName": group}, "schedulerName": "default-scheduler"}
    made = [pod(f"{group}-{number}", "6", "ml", **member, **spec) for number in range(count)]
    for one in made:
        one["metadata"]["uid"] = one["metadata"]["name"]
    return made

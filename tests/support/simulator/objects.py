"""Manifests and scenarios of small clusters to simulate."""

from collections.abc import Callable
from typing import Any

from kubestow.apiserver.kubelets import description

Object = dict[str, Any]
Write = Callable[..., str]
HEAD = "apiVersion: kubestow.dev/v1\nkind: Scenario\nspec:\n"
POD = "pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"


def nodes(count: int, **fields: Any) -> list[Object]:
    """Return nodes in three zones: node-0, node-1, ..."""
    group = description.Group(count=count, **{"zones": ["zone-a", "zone-b", "zone-c"], **fields})
    return [{"apiVersion": "v1", "kind": "Node", **node} for node in description.expand(group)]


def template(cpu: str = "1", run: float | None = None, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a template of pods that run for `run` seconds, or for ever."""
    requests = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    annotations = {} if run is None else {"kubestow.dev/run-seconds": str(run)}
    return {
        "metadata": {"labels": labels or {"app": "a"}, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": requests}], **spec},
    }


def pod(name: str, cpu: str = "1", **more: Any) -> Object:
    body = template(cpu, **more)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **body["metadata"]}, "spec": body["spec"]}


def deployment(name: str, replicas: int, cpu: str = "1", **more: Any) -> Object:
    """Return a Deployment of pods that run for ever."""
    labels = {"app": name}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(cpu, labels=labels, **more)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

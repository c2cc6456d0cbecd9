"""The audit log."""

import json
from collections.abc import Callable
from pathlib import Path

from support.apiserver.running import Running, pod

PODS = "/api/v1/namespaces/default/pods"


def test_requests_to_resources_are_recorded(start: Callable[..., Running], tmp_path: Path) -> None:
    """With verb, object, user and status; discovery is left out."""
    path = tmp_path / "logs" / "audit.jsonl"
    plane = start(audit_log=path)
    client = plane.client()
    client.get("/apis")
    client.create(PODS, pod())
    client.call("GET", f"{PODS}/b")
    plane.watch(f"{PODS}?watch=1&timeoutSeconds=1").next()
    client.delete(f"{PODS}?labelSelector=app=a")
    assert plane.client(token=None).call("GET", PODS)[0] == 401
    plane.stop()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["verb"], line["stage"], line["responseStatus"]["code"]) for line in lines] == [
        ("create", "ResponseComplete", 201),
        ("get", "ResponseComplete", 404),
        ("watch", "ResponseStarted", 200),
        ("deletecollection", "ResponseComplete", 200),
        ("list", "ResponseComplete", 401),
    ]
    assert lines[0]["user"]["username"] == "kubernetes-admin"
    assert lines[1]["objectRef"] == {"resource": "pods", "namespace": "default", "name": "b", "apiVersion": "v1"}
    assert lines[3]["requestURI"] == f"{PODS}?labelSelector=app=a"
    assert "user" not in lines[4]

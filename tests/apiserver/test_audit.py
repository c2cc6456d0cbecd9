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
    assert plane.client(token="wrong").call("GET", PODS)[0] == 401
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


def test_impersonation_is_recorded(start: Callable[..., Running], tmp_path: Path) -> None:
    """With the author, the impersonated user, and the verb that allowed it unless it is the original one."""
    path = tmp_path / "audit.jsonl"
    plane = start(audit_log=path)
    headers = {"Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Extra-example.com%2fscope": "a"}
    client = plane.client()
    client.raw("GET", PODS, headers=headers).read()
    client.raw("GET", PODS, headers={"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}).read()
    plane.stop()
    jane, master = [json.loads(line) for line in path.read_text().splitlines()]
    assert jane["user"]["username"] == master["user"]["username"] == "kubernetes-admin"
    assert jane["impersonatedUser"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["system:authenticated"],
        "extra": {"example.com/scope": ["a"]},
    }
    assert jane["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
    assert master["impersonatedUser"]["groups"] == ["system:masters", "system:authenticated"]
    assert "authenticationMetadata" not in master

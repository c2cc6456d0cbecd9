"""What kube-scheduler v1.37 asks of an API server, recorded from its audit log."""

import json
from typing import Any

from kubestow.client.resources import DEVICE_TAINT_RULES, POD_GROUPS, WATCHED
from support.apiserver.running import Client, pod
from support.reference import REFERENCE, with_reference

FOLDER = REFERENCE / "v1.37"
DEMO = "/api/v1/namespaces/demo/pods"
METHODS = {"create": "POST", "update": "PUT", "delete": "DELETE", "patch": "PATCH"}


def watched() -> set[str]:
    """Return the paths that kube-scheduler lists and watches."""
    lines = (FOLDER / "watches.txt").read_text().splitlines()
    return {line.partition("?")[0] for line in lines if line.startswith("/")}


@with_reference
def test_the_scheduler_watches_what_kube_scheduler_watches() -> None:
    """With the feature gate of pod groups, which the record was made with."""
    assert {resource.path for resource in (*WATCHED, DEVICE_TAINT_RULES, POD_GROUPS)} == watched()


@with_reference
def test_what_kube_scheduler_watches_is_served(client: Client) -> None:
    """Each list has its kind."""
    for path in sorted(watched()):
        assert client.get(f"{path}?limit=500&resourceVersion=0")["kind"].endswith("List"), path


@with_reference
def test_what_kube_scheduler_writes_is_accepted(client: Client) -> None:
    """Leases, events, bindings, and the status of pods and groups, with the status codes of kube-apiserver."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "demo"}})
    for name in ("plain", "big", "low1", "pre", "g1", "g2"):
        client.create(DEMO, pod(name))
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    client.create("/apis/scheduling.k8s.io/v1beta1/namespaces/demo/podgroups", group)
    requests = [json.loads(line) for line in (FOLDER / "wire.jsonl").read_text().splitlines()]
    for request in requests:
        if request["verb"] in METHODS:
            body: dict[str, Any] = request["requestObject"]
            for field in ("uid", "resourceVersion"):
                body.get("metadata", {}).pop(field, None)
            kind = "application/strategic-merge-patch+json" if request["verb"] == "patch" else "application/json"
            if request["verb"] == "delete":
                body["apiVersion"] = "v1"  # the audit log has an internal version
            path = request["requestURI"]
            status, answer = client.call(METHODS[request["verb"]], path, body, content_type=kind)
            assert status == request["code"], (path, answer)
    assert [client.get(f"{DEMO}/{name}")["spec"]["nodeName"] for name in ("g1", "pre")] == ["n2", "n3"]
    (condition,) = client.get("/apis/scheduling.k8s.io/v1beta1/namespaces/demo/podgroups/g")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodGroupInitiallyScheduled", "True")

"""Less common kinds: how they are served, and what the server sets in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.apiserver.running import Client, Running, pod
from support.apiserver.seeds import SEEDS

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_every_listed_group_and_version_is_served(client: Client) -> None:
    """The group, the version, and a list of each resource that supports it."""
    for group in client.get("/apis")["groups"]:
        assert client.get(f"/apis/{group['name']}")["name"] == group["name"]
        for version in group["versions"]:
            for one in client.get(f"/apis/{version['groupVersion']}")["resources"]:
                if "list" in one["verbs"]:
                    found = client.get(f"/apis/{version['groupVersion']}/{one['name']}")
                    assert found["kind"] == f"{one['kind']}List"


def test_the_server_is_found_by_its_service(start: Callable[..., Running], tmp_path: Path) -> None:
    """default/kubernetes has the address of the server, also after it changes."""
    for _ in range(2):
        plane = start(data_dir=tmp_path / "data")
        client = plane.client()
        service = client.get("/api/v1/namespaces/default/services/kubernetes")
        assert (service["spec"]["clusterIP"], service["spec"]["ports"][0]["targetPort"]) == ("10.96.0.1", plane.port)
        (subset,) = client.get("/api/v1/namespaces/default/endpoints/kubernetes")["subsets"]
        assert (subset["addresses"][0]["ip"], subset["ports"][0]["port"]) == ("127.0.0.1", plane.port)
        slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
        assert client.get(slices)["ports"][0]["port"] == plane.port
        plane.stop()


def test_an_autoscaler_is_served_in_both_versions(client: Client) -> None:
    """Fields that v1 lacks survive a write in v1."""
    old, new = (f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2"))
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1"}},
    }
    body = {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [memory]}}
    client.create(new, body)
    found = client.get(f"{old}/a")
    assert found["apiVersion"] == "autoscaling/v1"
    assert "metrics" not in found["spec"]
    found["spec"]["targetCPUUtilizationPercentage"] = 70
    assert client.call("PUT", f"{old}/a", found)[0] == 200
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
    both = client.get(f"{new}/a")
    assert both["spec"]["metrics"] == [cpu, memory]
    assert "annotations" not in both["metadata"] or not both["metadata"]["annotations"]


def test_binding_clears_the_nomination(client: Client) -> None:
    """A bound pod reserves no other node."""
    client.create(PODS, pod())
    client.patch(f"{PODS}/a/status", {"status": {"nominatedNodeName": "n1"}})
    client.create(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n2"}})
    assert "nominatedNodeName" not in client.get(f"{PODS}/a")["status"]


def test_label_keys_become_selector_requirements(client: Client) -> None:
    """Those of affinity and spread, with this pod's values; keys that it lacks are skipped."""
    selector = {"matchLabels": {"app": "a"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["none"]}
    against = {"topologyKey": "zone", "labelSelector": selector, "mismatchLabelKeys": ["app"]}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    required, preferred = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
    affinity = {
        "podAffinity": {required: [term]},
        "podAntiAffinity": {preferred: [{"weight": 1, "podAffinityTerm": against}]},
    }
    constraints = [{**spread, "matchLabelKeys": ["app"]}]
    spec = client.create(PODS, pod(affinity=affinity, topologySpreadConstraints=constraints))["spec"]

    def condition(operator: str) -> list[Any]:
        return [{"key": "app", "operator": operator, "values": ["a"]}]

    (near,) = spec["affinity"]["podAffinity"][required]
    assert near["labelSelector"]["matchExpressions"] == condition("In")
    (away,) = spec["affinity"]["podAntiAffinity"][preferred]
    assert away["podAffinityTerm"]["labelSelector"]["matchExpressions"] == condition("NotIn")
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == condition("In")


def test_scheduling_directives_of_a_suspended_job_are_mutable(client: Client) -> None:
    """Node selectors, tolerations and resources can change until it runs; images cannot."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    client.create(JOBS, {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template}})
    directed = {"nodeSelector": {"zone": "a"}, "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    strategic = "strategic-merge-patch+json"
    client.patch(f"{JOBS}/a", {"spec": {"template": {"spec": directed}}}, strategic)

    def refused(spec: Any) -> bool:
        patch = {"spec": {"template": {"spec": spec}}}
        status, _ = client.call("PATCH", f"{JOBS}/a", patch, content_type=f"application/{strategic}")
        return status == 422

    assert refused({"containers": [{"name": "c", "image": "i:2"}]})
    client.patch(f"{JOBS}/a", {"spec": {"suspend": False}})
    assert refused({"nodeSelector": {"zone": "b"}})


def test_all_errors_are_reported(client: Client) -> None:
    """Those of the rules and of the schema, each once."""
    bad = pod("bad_name", restartPolicy="Sometimes", containers=[{"name": "A"}], nodeSelector={"a b": "c"})
    status, refused = client.call("POST", PODS, bad)
    assert status == 422
    fields = [cause["field"] for cause in refused["details"]["causes"]]
    assert fields == [
        "metadata.name",
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.restartPolicy",
        "spec.nodeSelector",
    ]
    assert refused["message"].startswith(
        'Pod "bad_name" is invalid: [metadata.name: Invalid value: "bad_name": a lower'
    )


@pytest.mark.parametrize("kind", ["selfsubjectaccessreviews", "selfsubjectreviews"])
def test_reviews_have_no_table(client: Client, kind: str) -> None:
    """406, as from a server without table support."""
    group = "authorization" if "access" in kind else "authentication"
    status, refused = client.call("POST", f"/apis/{group}.k8s.io/v1/{kind}", {"spec": {}}, accept=TABLE)
    assert (status, refused["reason"]) == (406, "NotAcceptable")


def test_a_collection_of_any_kind_can_be_deleted(client: Client) -> None:
    """By label; other objects stay."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    for name in ("a", "b"):
        client.create(roles, {"metadata": {"name": name, "labels": {"app": name}}, "rules": []})
    client.delete(f"{roles}?labelSelector=app=a")
    assert [one["metadata"]["name"] for one in client.get(roles)["items"]] == ["b"]


def test_approval_changes_only_conditions(client: Client) -> None:
    """A write of the approval subresource keeps the rest of a certificate request."""
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    storage = "certificatesigningrequests.certificates.k8s.io"
    made = client.create(path, {"metadata": {"name": "a"}, **SEEDS[storage]})
    made["status"] = {"conditions": [{"type": "Approved", "status": "True"}], "certificate": "YQ=="}
    status, approved = client.call("PUT", f"{path}/a/approval", made)
    assert (status, list(approved["status"])) == (200, ["conditions"])
    assert client.get(path, accept=TABLE)["rows"][0]["cells"][-1] == "Approved"


def test_a_certificate_request_records_its_user(client: Client) -> None:
    """It overrides the values in the request."""
    storage = "certificatesigningrequests.certificates.k8s.io"
    spec = {**SEEDS[storage]["spec"], "username": "somebody-else", "extra": {"a": ["b"]}}
    made = client.create(
        "/apis/certificates.k8s.io/v1/certificatesigningrequests", {"metadata": {"name": "a"}, "spec": spec}
    )
    assert made["spec"]["username"] != "somebody-else"
    assert ("system:masters" in made["spec"]["groups"], "extra" in made["spec"]) == (True, False)

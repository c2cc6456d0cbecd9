"""Rules of pod groups and workloads."""

from typing import Any

import pytest

from support.apiserver.running import Client, pod

GROUP = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
GROUPS = f"{GROUP}/podgroups"
WORKLOADS = f"{GROUP}/workloads"
PODS = "/api/v1/namespaces/default/pods"
GANG = {"gang": {"minCount": 2}}
TEMPLATE = {"name": "t", "schedulingPolicy": GANG}


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": GANG, **spec}}


def workload(*templates: Any, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": list(templates or (TEMPLATE,)), **spec}}


def made_from(workload_name: str, template: str) -> dict[str, Any]:
    return {"podGroupTemplateRef": {"workload": {"workloadName": workload_name, "podGroupTemplateName": template}}}


def wrong(client: Client, path: str, body: Any) -> dict[str, str]:
    """Return field and message of each cause."""
    status, refused = client.call("POST", path, body)
    assert (status, refused["reason"]) == (422, "Invalid"), refused
    return {cause["field"]: cause["message"] for cause in refused["details"]["causes"]}


def test_defaults_are_set(client: Client) -> None:
    """Pods of a group are disrupted one by one; its priority is that of the default class, if any."""
    made = client.create(GROUPS, group())
    assert made["spec"] == {"schedulingPolicy": GANG, "disruptionMode": "Pod", "priority": 0}
    assert "generation" not in made["metadata"]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy", 'Invalid value: "": must specify one of: `basic`, `gang`'),
        (
            {"schedulingPolicy": {"basic": {}, **GANG}},
            "spec.schedulingPolicy",
            'Invalid value: "{`basic`, `gang`}": must specify exactly one of: `basic`, `gang`',
        ),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount", "Required value"),
        (
            {"schedulingPolicy": {"gang": {"minCount": -1}}},
            "spec.schedulingPolicy.gang.minCount",
            "Invalid value: -1: must be greater than or equal to 1",
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "spec.schedulingConstraints.topology",
            "Too many: 2: must have at most 1 item",
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": ""}]}},
            "spec.schedulingConstraints.topology[0].key",
            "Required value",
        ),
        (
            {"disruptionMode": "Node"},
            "spec.disruptionMode",
            'Unsupported value: "Node": supported values: "Pod", "PodGroup"',
        ),
        (
            {"resourceClaims": [{"name": "c"}]},
            "spec.resourceClaims[0]",
            'Invalid value: "": must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
        ),
        ({"podGroupTemplateRef": {}}, "spec.podGroupTemplateRef", 'Invalid value: "": must specify one of: `workload`'),
    ],
)
def test_an_invalid_group_is_rejected(client: Client, spec: dict[str, Any], field: str, message: str) -> None:
    """Every invalid field is named, with Kubernetes' messages."""
    assert wrong(client, GROUPS, group(**spec)) == {field: message}


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (workload(TEMPLATE, TEMPLATE), "spec.podGroupTemplates[1]", 'Duplicate value: {"name":"t"}'),
        (
            workload(*({**TEMPLATE, "name": f"t{number}"} for number in range(9))),
            "spec.podGroupTemplates",
            "Too many: 9: must have at most 8 items",
        ),
        (workload({**TEMPLATE, "name": ""}), "spec.podGroupTemplates[0].name", "Required value"),
        (workload(controllerRef={"kind": "Job"}), "spec.controllerRef.name", "Required value"),
    ],
)
def test_an_invalid_workload_is_rejected(client: Client, body: dict[str, Any], field: str, message: str) -> None:
    """Templates have unique names and a maximum number."""
    assert wrong(client, WORKLOADS, body) == {field: message}


@pytest.mark.parametrize(
    ("path", "body", "field", "value"),
    [
        (GROUPS, group(), "schedulingPolicy", {"basic": {}}),
        (GROUPS, group(), "schedulingConstraints", {"topology": [{"key": "rack"}]}),
        (GROUPS, group(), "disruptionMode", "PodGroup"),
        (WORKLOADS, workload(), "controllerRef", {"kind": "Job", "name": "j", "apiGroup": "batch"}),
        (WORKLOADS, workload(), "podGroupTemplates", [{**TEMPLATE, "name": "other"}]),
    ],
)
def test_specs_are_immutable(client: Client, path: str, body: dict[str, Any], field: str, value: Any) -> None:
    """Labels are not."""
    made = client.create(path, body)
    place = f"{path}/{made['metadata']['name']}"
    status, refused = client.call("PUT", place, {**made, "spec": {**made["spec"], field: value}})
    assert (status, refused["details"]["causes"][0]["field"]) == (422, f"spec.{field}")
    assert refused["details"]["causes"][0]["message"] == "Invalid value: field is immutable"
    status, _ = client.call("PUT", place, {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
    assert status == 200


def test_the_template_of_a_group_must_exist(client: Client) -> None:
    """The workload, and the template in it."""
    status, refused = client.call("POST", GROUPS, group(**made_from("w", "t")))
    assert (status, refused["message"]) == (
        403,
        'podgroups.scheduling.k8s.io "g" is forbidden: PodGroup rejected: Workload "w" not found',
    )
    client.create(WORKLOADS, workload())
    status, refused = client.call("POST", GROUPS, group(**made_from("w", "x")))
    assert (status, refused["message"].partition("rejected: ")[2]) == (
        403,
        'PodGroupTemplate "x" not found in Workload "w"',
    )
    client.create(GROUPS, group(**made_from("w", "t")))


def test_priority_comes_from_the_class(client: Client) -> None:
    """Another priority is rejected."""
    body = {"metadata": {"name": "high"}, "value": 100}
    client.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    status, refused = client.call("POST", GROUPS, group(priorityClassName="high", priority=7))
    assert status == 403
    assert "priority set in the pod group (7) must match the priority computed (100)" in refused["message"]
    assert client.create(GROUPS, group(priorityClassName="high"))["spec"]["priority"] == 100


def test_conditions_must_be_complete(client: Client) -> None:
    """A condition has a type, a status, a reason and a time."""
    made = client.create(GROUPS, group())
    condition = {"type": "PodGroupScheduled", "status": "True", "message": ""}
    status, refused = client.call("PUT", f"{GROUPS}/g/status", {**made, "status": {"conditions": [condition]}})
    assert status == 422
    fields = {cause["field"] for cause in refused["details"]["causes"]}
    assert fields >= {"status.conditions[0].reason", "status.conditions[0].lastTransitionTime"}


def test_the_group_of_a_pod_is_immutable(client: Client) -> None:
    """A scheduling group must name a group."""
    made = pod("p")
    made["spec"]["schedulingGroup"] = {}
    assert "must specify one of: `podGroupName`" in wrong(client, PODS, made)["spec.schedulingGroup.podGroupName"]
    made["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    created = client.create(PODS, made)
    created["spec"]["schedulingGroup"] = {"podGroupName": "h"}
    status, _ = client.call("PUT", f"{PODS}/p", created)
    assert status == 422

"""Rules of pod groups, of groups of them, and of workloads."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.config.features import Features
from support.apiserver.running import Client, Running, pod

GROUP = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
GROUPS = f"{GROUP}/podgroups"
WORKLOADS = f"{GROUP}/workloads"
COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"
PODS = "/api/v1/namespaces/default/pods"
GANG = {"gang": {"minCount": 2}}
TEMPLATE = {"name": "t", "schedulingPolicy": GANG}


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": GANG, **spec}}


def workload(*templates: Any, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": list(templates or (TEMPLATE,)), **spec}}


def made_from(workload_name: str, template: str) -> dict[str, Any]:
    return {"workloadRef": {"workloadName": workload_name, "templateName": template}}


def wrong(client: Client, path: str, body: Any) -> dict[str, str]:
    """Return field and message of each cause."""
    status, refused = client.call("POST", path, body)
    assert (status, refused["reason"]) == (422, "Invalid"), refused
    return causes(refused)


def test_defaults_are_set(client: Client) -> None:
    """Pods of a group are disrupted one by one; its priority is that of the default class, if any."""
    made = client.create(GROUPS, group())
    assert made["spec"] == {"schedulingPolicy": GANG, "disruptionMode": {"single": {}}, "priority": 0}
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
            {"disruptionMode": {"single": {}, "all": {}}},
            "spec.disruptionMode",
            'Invalid value: "{`single`, `all`}": must specify exactly one of: `single`, `all`',
        ),
        ({"workloadRef": {"workloadName": "w", "templateName": ""}}, "spec.workloadRef.templateName", "Required value"),
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
        (GROUPS, group(), "workloadRef", {"workloadName": "w", "templateName": "t"}),
        (GROUPS, group(), "schedulingConstraints", {"topology": [{"key": "rack"}]}),
        (GROUPS, group(), "disruptionMode", {"all": {}}),
        (WORKLOADS, workload(), "controllerRef", {"kind": "Job", "name": "j", "apiGroup": "batch"}),
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


def changed(client: Client, path: str, made: dict[str, Any], **spec: Any) -> tuple[int, Any]:
    return client.call("PUT", f"{path}/{made['metadata']['name']}", {**made, "spec": {**made["spec"], **spec}})


def causes(refused: dict[str, Any]) -> dict[str, str]:
    return {cause["field"]: cause["message"] for cause in refused["details"]["causes"]}


def test_the_size_of_a_gang_may_change(client: Client) -> None:
    """That of a group, and that of a template; the policy may not."""
    larger = {"gang": {"minCount": 3}}
    made = client.create(GROUPS, group())
    assert changed(client, GROUPS, made, schedulingPolicy=larger)[0] == 200
    status, refused = changed(client, GROUPS, client.get(f"{GROUPS}/g"), schedulingPolicy={"basic": {}})
    assert (status, causes(refused)) == (
        422,
        {
            "spec.schedulingPolicy.basic": "Invalid value: field is immutable",
            "spec.schedulingPolicy.gang": "Invalid value: field cannot be cleared once set",
        },
    )
    made = client.create(WORKLOADS, workload())
    assert changed(client, WORKLOADS, made, podGroupTemplates=[{**TEMPLATE, "schedulingPolicy": larger}])[0] == 200


def test_templates_are_neither_added_nor_removed(client: Client) -> None:
    """A template with another name is another template."""
    made = client.create(WORKLOADS, workload())
    status, refused = changed(client, WORKLOADS, made, podGroupTemplates=[{**TEMPLATE, "name": "other"}])
    assert (status, causes(refused)) == (
        422,
        {
            "spec.podGroupTemplates[0]": "Forbidden: item may not be added",
            "spec.podGroupTemplates": "Forbidden: item may not be removed",
        },
    )


def test_templates_of_a_workload_have_one_priority(client: Client) -> None:
    """Groups of one workload are preempted in the same order."""
    templates = (TEMPLATE, {**TEMPLATE, "name": "u", "priorityClassName": "high"})
    assert wrong(client, WORKLOADS, workload(*templates)) == {
        "spec": "Invalid value: detected multiple priority configurations"
    }


def test_a_group_may_name_a_workload_that_does_not_exist(client: Client) -> None:
    """The reference is for users and tools."""
    client.create(GROUPS, group(**made_from("w", "t")))


def test_groups_and_workloads_are_served_in_two_versions(client: Client) -> None:
    """Both versions have the same fields."""
    alpha = GROUP.replace("v1beta1", "v1alpha3")
    client.create(GROUPS, group())
    client.create(f"{alpha}/workloads", workload())
    assert client.get(f"{alpha}/podgroups/g")["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    stored = client.get(f"{WORKLOADS}/w")
    assert (stored["apiVersion"], stored["spec"]["podGroupTemplates"]) == ("scheduling.k8s.io/v1beta1", [TEMPLATE])


def test_fields_of_disabled_features_are_dropped(client: Client) -> None:
    """As in Kubernetes; the feature gates are off by default."""
    made = client.create(GROUPS, group(preemptionPolicy="Never", parentCompositePodGroupName="p"))
    assert made["spec"].keys() == {"schedulingPolicy", "disruptionMode", "priority"}
    made = client.create(WORKLOADS, workload({**TEMPLATE, "preemptionPolicy": "Never"}))
    assert made["spec"] == {"podGroupTemplates": [TEMPLATE]}


def test_claims_of_a_group_are_checked_with_their_gate(client: Client, start: Callable[..., Running]) -> None:
    """They are dropped without it."""
    claiming = group(resourceClaims=[{"name": "c"}])
    assert "resourceClaims" not in client.create(GROUPS, claiming)["spec"]
    with_claims = start(features=Features(dra_workload_resource_claims=True)).client()
    assert wrong(with_claims, GROUPS, claiming) == {
        "spec.resourceClaims[0]": 'Invalid value: "": must specify one of: '
        "`resourceClaimName`, `resourceClaimTemplateName`"
    }


@pytest.fixture
def composing(start: Callable[..., Running]) -> Client:
    """A client of a server with composite groups and preemption policies of groups."""
    return start(features=Features(composite_pod_group=True, pod_group_preemption_policy=True)).client()


def composite(*children: Any, **more: Any) -> dict[str, Any]:
    return {"name": "c", "schedulingPolicy": {"basic": {}}, "compositePodGroupTemplates": list(children), **more}


def nested(depth: int) -> dict[str, Any]:
    """Return a composite template of a depth."""
    inner = {"podGroupTemplates": [TEMPLATE]} if depth == 1 else {"compositePodGroupTemplates": [nested(depth - 1)]}
    return {"name": f"c{depth}", "schedulingPolicy": {"gang": {"minGroupCount": 1}}, **inner}


def test_a_composite_group_has_groups_as_members(composing: Client) -> None:
    """Its policy counts groups instead of pods."""
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, **made_from("w", "t")}
    made = composing.create(COMPOSITES, {"metadata": {"name": "c"}, "spec": spec})
    more = {"disruptionMode": {"single": {}}, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    assert made["spec"] == {**spec, **more}
    member = group(parentCompositePodGroupName="c")
    assert wrong(composing, GROUPS, member) == {
        "spec.workloadRef": "Required value: must be set when parentCompositePodGroupName is set"
    }
    composing.create(GROUPS, group(parentCompositePodGroupName="c", **made_from("w", "t")))
    without = {"metadata": {"name": "d"}, "spec": {"schedulingPolicy": {"gang": {}}}}
    assert wrong(composing, COMPOSITES, without) == {
        "spec.workloadRef": "Required value",
        "spec.schedulingPolicy.gang.minGroupCount": "Required value",
    }


def test_the_size_of_a_gang_of_groups_cannot_change(composing: Client) -> None:
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, **made_from("w", "t")}
    made = composing.create(COMPOSITES, {"metadata": {"name": "c"}, "spec": spec})
    status, refused = changed(composing, COMPOSITES, made, schedulingPolicy={"gang": {"minGroupCount": 1}})
    assert (status, causes(refused)) == (422, {"spec.schedulingPolicy": "Invalid value: field is immutable"})


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"podGroupTemplates": [TEMPLATE], "compositePodGroupTemplates": [nested(1)]},
            "spec",
            (
                'Invalid value: "{`podGroupTemplates`, `compositePodGroupTemplates`}": '
                "must specify exactly one of: `podGroupTemplates`, `compositePodGroupTemplates`"
            ),
        ),
        ({}, "spec", 'Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`'),
        (
            {"compositePodGroupTemplates": [nested(4)]},
            "spec.compositePodGroupTemplates[0]",
            "Invalid value: maximum template hierarchy depth is 4",
        ),
        (
            {"compositePodGroupTemplates": [composite()]},
            "spec.compositePodGroupTemplates[0]",
            'Invalid value: "c": must have at least one child PodGroupTemplate or CompositePodGroupTemplate',
        ),
        (
            {"compositePodGroupTemplates": [composite(nested(1), podGroupTemplates=[TEMPLATE])]},
            "spec.compositePodGroupTemplates[0].compositePodGroupTemplates[0].podGroupTemplates[0].name",
            'Duplicate value: "t"',
        ),
        (
            {"compositePodGroupTemplates": [composite(nested(1), priorityClassName="high")]},
            "spec",
            "Invalid value: all priority and priorityClassName values must be identical, detected multiple values",
        ),
    ],
)
def test_an_invalid_tree_of_templates_is_rejected(
    composing: Client, spec: dict[str, Any], field: str, message: str
) -> None:
    """Names are unique in the whole tree, whose depth is limited."""
    problems = wrong(composing, WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
    assert problems[field] == message


def test_the_preemption_policy_comes_from_the_class(composing: Client) -> None:
    """Another policy is rejected."""
    body = {"metadata": {"name": "calm"}, "value": 100, "preemptionPolicy": "Never"}
    composing.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    assert composing.create(GROUPS, group(priorityClassName="calm"))["spec"]["preemptionPolicy"] == "Never"
    other = {**group(priorityClassName="calm", preemptionPolicy="PreemptLowerPriority"), "metadata": {"name": "o"}}
    status, refused = composing.call("POST", GROUPS, other)
    assert status == 403
    assert refused["message"].partition("forbidden: ")[2] == (
        "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod group spec; "
        "priority admission controller computed Never from the given PriorityClass name"
    )


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
    condition = {"type": "PodGroupInitiallyScheduled", "status": "True", "message": ""}
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

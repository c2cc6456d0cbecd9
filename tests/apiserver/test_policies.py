"""Admission policies: enabled by bindings, with the messages of kube-apiserver."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.apiserver.running import Client, Running, pod

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


def policy(*validations: Any, **spec: Any) -> dict[str, Any]:
    """Return a policy for ConfigMaps."""
    listed = [{"expression": one} if isinstance(one, str) else one for one in validations]
    match = {"matchConstraints": {"resourceRules": [RULE]}}
    return {"metadata": {"name": "p"}, "spec": {**match, "validations": listed, **spec}}


def enforce(client: Client, body: dict[str, Any], *actions: str, kind: str = "validating", **spec: Any) -> None:
    """Create a policy and a binding of it."""
    client.create(f"{GROUP}/{kind}admissionpolicies", body)
    bound: dict[str, Any] = {"policyName": body["metadata"]["name"], **spec}
    if kind == "validating":
        bound["validationActions"] = list(actions) or ["Deny"]
    client.create(f"{GROUP}/{kind}admissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})


def config(name: str = "a", **more: Any) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name, **more.pop("metadata", {})}, **more}


def test_a_policy_denies_writes(client: Client) -> None:
    """A failed validation denies the write with its message; without a binding, all writes pass."""
    body = policy({"expression": "has(object.data) && object.data.size() > 0", "message": "no data"})
    client.create(f"{GROUP}/validatingadmissionpolicies", body)
    client.create(MAPS, config("before"))
    spec = {"policyName": "p", "validationActions": ["Deny"]}
    client.create(f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": spec})
    status, refused = client.call("POST", MAPS, config())
    message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no data"
    assert (status, refused["reason"]) == (422, "Invalid")
    assert refused["message"] == f'configmaps "a" is forbidden: {message}'
    assert refused["details"]["causes"] == [{"message": message}]
    client.create(MAPS, config(data={"x": "1"}))
    assert client.call("PATCH", f"{MAPS}/a", {"data": None}, content_type="application/merge-patch+json")[0] == 422
    assert client.call("POST", f"{MAPS}?dryRun=All", config("b"))[0] == 422


@pytest.mark.parametrize(
    ("validation", "status", "message"),
    [
        ({"expression": "false"}, 422, "failed expression: false"),
        ({"expression": "false", "reason": "Forbidden"}, 403, "failed expression: false"),
        ({"expression": "false", "messageExpression": "'no ' + object.metadata.name"}, 422, "no a"),
        ({"expression": "false", "messageExpression": "object.none", "message": "m"}, 422, "m"),
        ({"expression": "object.none == 1"}, 422, "resulted in error: no such key: none"),
        ({"expression": "request.operation == 'DELETE' || request.userInfo.username == 'x'"}, 422, "failed expression"),
        ({"expression": "namespaceObject.metadata.name == 'other'"}, 422, "failed expression"),
        ({"expression": "oldObject != null"}, 422, "failed expression"),
    ],
)
def test_a_policy_sets_reason_and_message(
    client: Client, validation: dict[str, str], status: int, message: str
) -> None:
    """An expression that fails to evaluate denies the write."""
    enforce(client, policy(validation))
    answer, refused = client.call("POST", MAPS, config())
    assert (answer, message in refused["message"]) == (status, True), refused


def test_a_failing_policy_can_be_ignored(client: Client) -> None:
    """With failurePolicy Ignore, only a false expression denies the write."""
    enforce(client, policy("object.none == 1", failurePolicy="Ignore"))
    client.create(MAPS, config())


def test_variables_are_evaluated_on_first_use(client: Client) -> None:
    """A variable can use those before it; one that fails has no effect unless it is used."""
    variables = [
        {"name": "size", "expression": "has(object.data) ? object.data.size() : 0"},
        {"name": "odd", "expression": "variables.size % 2 == 1"},
        {"name": "broken", "expression": "object.none"},
    ]
    enforce(client, policy("variables.odd || variables.broken == 1", variables=variables))
    client.create(MAPS, config(data={"x": "1"}))
    status, refused = client.call("POST", MAPS, config("b"))
    assert status == 422
    assert 'composited variable "broken" fails to evaluate: no such key: none' in refused["message"]


@pytest.mark.parametrize(
    ("where", "refused"),
    [
        ({"objectSelector": {"matchLabels": {"strict": "yes"}}}, True),
        ({"objectSelector": {"matchLabels": {"strict": "no"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"resourceRules": [{**RULE, "resources": ["*"]}]}, True),
        ({"resourceRules": [{**RULE, "resources": ["configmaps/status", "secrets"]}]}, False),
        ({"resourceRules": [{**RULE, "resourceNames": ["b"]}]}, False),
        ({"resourceRules": [{**RULE, "operations": ["UPDATE"]}]}, False),
        ({"resourceRules": [{**RULE, "scope": "Cluster"}]}, False),
        ({"excludeResourceRules": [RULE]}, False),
    ],
)
def test_a_binding_restricts_the_policy(client: Client, where: dict[str, Any], refused: bool) -> None:
    """Rules and selectors of the binding restrict the writes that match."""
    enforce(client, policy("false"), matchResources=where)
    assert client.call("POST", MAPS, config(metadata={"labels": {"strict": "yes"}}))[0] == (422 if refused else 201)


def test_match_conditions_restrict_the_policy(client: Client) -> None:
    """A write with a false condition is not evaluated."""
    skips = [{"name": "not-me", "expression": "object.metadata.name != 'skip-me'"}]
    enforce(client, policy("false", matchConditions=skips))
    client.create(MAPS, config("skip-me"))
    assert client.call("POST", MAPS, config())[0] == 422


def test_a_policy_is_evaluated_for_each_parameter_object(client: Client) -> None:
    """Without any parameter object, the binding can deny the write."""
    client.create(MAPS, config("most", data={"n": "2"}))
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    body = policy("object.data.size() <= int(params.data.n)", paramKind=kind)
    enforce(client, body, paramRef={"name": "most", "parameterNotFoundAction": "Deny"})
    client.create(MAPS, config(data={"a": "", "b": ""}))
    assert client.call("POST", MAPS, config("b", data={"a": "", "b": "", "c": ""}))[0] == 422
    client.delete(f"{MAPS}/most")
    status, refused = client.call("POST", MAPS, config("c"))
    assert status == 422
    assert "no params found for policy binding with `Deny` parameterNotFoundAction" in refused["message"]


def test_deletions_can_be_denied(client: Client) -> None:
    """A deletion has an old object and no new one."""
    rule = {**RULE, "operations": ["DELETE"]}
    guard = policy("object == null && !('keep' in oldObject.data)", matchConstraints={"resourceRules": [rule]})
    enforce(client, guard)
    client.create(MAPS, config(data={"keep": "1"}))
    client.create(MAPS, config("b", data={}))
    assert client.call("DELETE", f"{MAPS}/a")[0] == 422
    client.delete(f"{MAPS}/b")


def test_admission_policies_are_exempt_from_policies(client: Client) -> None:
    """A policy that denies everything can be deleted."""
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    enforce(client, policy("false", matchConstraints={"resourceRules": [everything]}))
    assert client.call("POST", MAPS, config())[0] == 422
    client.delete(f"{GROUP}/validatingadmissionpolicybindings/b")
    client.create(MAPS, config())


def test_a_rule_for_one_version_matches_the_others(client: Client) -> None:
    """Expressions see the object in the version of the rule; with matchPolicy Exact, other versions do not match."""
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    rule["resources"] = ["horizontalpodautoscalers"]
    guard = policy("object.spec.targetCPUUtilizationPercentage < 90", matchConstraints={"resourceRules": [rule]})
    enforce(client, guard)
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 95}}
    scaler = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    scaler["metrics"] = [{"type": "Resource", "resource": metric}]
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    status, refused = client.call("POST", path, {"metadata": {"name": "a"}, "spec": scaler})
    assert (status, "targetCPUUtilizationPercentage" in refused["message"]) == (422, True)


def test_subresources_are_reviewed(client: Client) -> None:
    """Expressions see a Binding, an Eviction, and a Scale before and after the write."""
    expression = (
        "request.kind.kind == 'Binding' ? object.target.name != 'forbidden' :"
        " request.kind.kind == 'Scale' ? object.spec.replicas <= oldObject.spec.replicas + 1 : false"
    )
    rules = [
        {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": [one]}
        for one in ("pods/binding", "pods/eviction", "deployments/scale")
    ]
    enforce(client, policy(expression, matchConstraints={"resourceRules": rules}))
    pods, deployments = "/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/deployments"
    client.create(pods, pod())
    for node, status in (("forbidden", 422), ("allowed", 201)):
        assert (
            client.call("POST", f"{pods}/a/binding", {"metadata": {"name": "a"}, "target": {"name": node}})[0] == status
        )
    assert client.call("POST", f"{pods}/a/eviction", {"metadata": {"name": "a"}})[0] == 422
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.create(deployments, {"metadata": {"name": "d"}, "spec": spec})
    for replicas, status in ((2, 200), (5, 422)):
        change = {"spec": {"replicas": replicas}}
        media = "application/merge-patch+json"
        assert client.call("PATCH", f"{deployments}/d/scale", change, content_type=media)[0] == status


def test_actions_can_warn_and_audit(start: Callable[..., Running], tmp_path: Path) -> None:
    """Without Deny, the write passes with a warning or an audit annotation."""
    log = tmp_path / "audit.log"
    client = start(audit_log=log).client()
    annotation = [{"key": "who", "valueExpression": "'by ' + request.userInfo.username"}]
    enforce(client, policy({"expression": "false", "message": "hm"}, auditAnnotations=annotation), "Warn", "Audit")
    response = client.raw("POST", MAPS, json.dumps(config()).encode())
    assert response.status == 201
    message = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm"
    assert response.getheader("Warning") == f'299 - "{message}"'
    annotations = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["annotations"]
    assert annotations["p/who"].startswith("by ")
    (failure,) = json.loads(annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert (failure["message"], failure["policy"], failure["expressionIndex"]) == ("hm", "p", 0)


MUTATIONS = {
    "apply": {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": 'Object{metadata: Object.metadata{labels: {"by": "policy"}}}'},
    },
    "patch": {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": '[JSONPatch{op: "add", path: "/metadata/labels", value: {"by": "policy"}}]'},
    },
}


@pytest.mark.parametrize("how", MUTATIONS)
def test_a_mutating_policy_changes_the_object(client: Client, how: str) -> None:
    """By apply configurations and JSON patches, at creation and at updates."""
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": [MUTATIONS[how]]}
    enforce(client, {"metadata": {"name": "p"}, "spec": spec}, kind="mutating")
    created = client.create(MAPS, config(data={"x": "1"}))
    assert (created["metadata"]["labels"], created["data"]) == ({"by": "policy"}, {"x": "1"})
    patched = client.patch(f"{MAPS}/a", {"metadata": {"labels": {"by": "me"}}})
    assert patched["metadata"]["labels"] == {"by": "policy"}


def test_an_invalid_mutation_denies_the_write(client: Client) -> None:
    """The result must be valid; errors deny the write unless they are ignored."""
    bad = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: 1}"}}
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": [bad]}
    enforce(client, {"metadata": {"name": "p"}, "spec": spec}, kind="mutating")
    assert client.call("POST", MAPS, config())[0] == 500
    broken = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: object.none}"}}
    path = f"{GROUP}/mutatingadmissionpolicies/p"
    client.patch(path, {"spec": {"mutations": [broken]}})
    assert client.call("POST", MAPS, config())[0] == 403
    client.patch(path, {"spec": {"failurePolicy": "Ignore"}})
    client.create(MAPS, config())


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validations": [{"expression": "object.x >"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "'text'"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "params.x"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "variables.x"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "request.none == 1"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "true", "messageExpression": "1"}]}, "spec.validations[0].messageExpression"),
        ({"validations": [{"expression": "true", "reason": "Why"}]}, "spec.validations[0].reason"),
        ({"validations": [{"expression": "true\n&& true"}]}, "spec.validations[0].message"),
        ({"validations": []}, "spec.validations"),
        ({"matchConstraints": None}, "spec.matchConstraints"),
        ({"matchConstraints": {"resourceRules": []}}, "spec.matchConstraints.resourceRules"),
        ({"variables": [{"name": "a-b", "expression": "1"}]}, "spec.variables[0].name"),
        ({"variables": [{"name": "a", "expression": "b"}]}, "spec.variables[0].expression"),
        ({"matchConditions": [{"name": "a", "expression": "1"}]}, "spec.matchConditions[0].expression"),
        ({"paramKind": {"kind": "Secret"}}, "spec.paramKind.apiVersion"),
        ({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}, "spec.auditAnnotations[0].valueExpression"),
        ({"failurePolicy": "Hope"}, "spec.failurePolicy"),
    ],
)
def test_invalid_policies_are_rejected(client: Client, spec: dict[str, Any], field: str) -> None:
    """The causes name the invalid fields."""
    status, refused = client.call("POST", f"{GROUP}/validatingadmissionpolicies", policy("true", **spec))
    assert (status, field in [one["field"] for one in refused["details"]["causes"]]) == (422, True), refused


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"policyName": ""}, "spec.policyName"),
        ({"validationActions": []}, "spec.validationActions"),
        ({"validationActions": ["Deny", "Warn"]}, "spec.validationActions"),
        ({"validationActions": ["Shout"]}, "spec.validationActions[0]"),
        ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "spec.paramRef"),
        ({"paramRef": {"name": "a", "selector": {}}}, "spec.paramRef.name"),
        ({"paramRef": {"name": "a"}}, "spec.paramRef.parameterNotFoundAction"),
    ],
)
def test_invalid_bindings_are_rejected(client: Client, spec: dict[str, Any], field: str) -> None:
    """The causes name the invalid fields."""
    body = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"], **spec}}
    status, refused = client.call("POST", f"{GROUP}/validatingadmissionpolicybindings", body)
    assert (status, field in [one["field"] for one in refused["details"]["causes"]]) == (422, True), refused


HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [RULE],
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"matchConditions": [{"name": "a", "expression": "... [] bad"}]}, "matchConditions[0].expression"),
        ({"name": "short"}, "name"),
        ({"clientConfig": {}}, "clientConfig"),
        ({"clientConfig": {"url": "http://a"}}, "clientConfig.url"),
        ({"sideEffects": "Some"}, "sideEffects"),
        ({"admissionReviewVersions": ["v2"]}, "admissionReviewVersions"),
        ({"timeoutSeconds": 60}, "timeoutSeconds"),
        ({"rules": [{**RULE, "operations": ["READ"]}]}, "rules[0].operations[0]"),
    ],
)
@pytest.mark.parametrize("kind", ["validating", "mutating"])
def test_invalid_webhooks_are_rejected(client: Client, kind: str, change: dict[str, Any], field: str) -> None:
    """The causes name the invalid fields."""
    body = {"metadata": {"name": "w"}, "webhooks": [{**HOOK, **change}]}
    status, refused = client.call("POST", f"{GROUP}/{kind}webhookconfigurations", body)
    assert (status, refused["details"]["causes"][0]["field"]) == (422, f"webhooks[0].{field}"), refused

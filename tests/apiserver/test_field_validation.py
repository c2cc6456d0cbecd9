"""Field validation: errors that name the unknown, repeated or invalid field."""

from typing import Any

import pytest

from support.apiserver.running import Client, pod

PODS = "/api/v1/namespaces/default/pods"


def causes(body: dict[str, Any]) -> list[str]:
    """Return the fields in the causes of a Status."""
    return [one["field"] for one in body["details"]["causes"]]


def test_unknown_fields_are_refused_when_strict(client: Client) -> None:
    """The 400 response names all of them."""
    wanted = pod(colour="red")
    wanted["spec"]["containers"][0]["imagee"] = "x"
    status, body = client.call("POST", f"{PODS}?fieldValidation=Strict", wanted)
    assert status == 400
    assert (
        'strict decoding error: unknown field "spec.containers[0].imagee", unknown field "spec.colour"'
        in body["message"]
    )


def test_unknown_fields_are_dropped_with_a_warning(client: Client) -> None:
    """The default: a warning, and the field is not stored."""
    response = client.raw(
        "POST", PODS, b'{"metadata":{"name":"a"},"colour":1,"spec":{"containers":[{"name":"c","image":"i"}]}}'
    )
    assert response.status == 201
    assert response.getheader("Warning") == '299 - "unknown field \\"colour\\""'
    assert b"colour" not in response.read()


def test_strict_errors_have_the_order_of_the_body(client: Client) -> None:
    """Unknown and repeated fields are listed once; values of unknown fields are not searched."""
    body = (
        b'{"kind":"Node","odd":{"x":1,"x":2},"metadata":{"name":"a","labels":{"l":"1","l":"2"}},'
        b'"spec":{"unschedulable":true,"unknown":1,"unschedulable":false,"unknown":2}}'
    )
    status, refused = client.call("POST", "/api/v1/nodes?fieldValidation=Strict", body)
    assert status == 400
    assert refused["message"] == (
        'Node in version "v1" cannot be handled as a Node: strict decoding error: unknown field "odd", '
        'duplicate field "metadata.labels.l", unknown field "spec.unknown", duplicate field "spec.unschedulable"'
    )


def test_a_deeply_nested_body_is_a_bad_request(client: Client) -> None:
    """The response is 400, not an internal error."""
    deep = b'{"kind":"ConfigMap","data":' + b'{"a":' * 900 + b"1" + b"}" * 901
    status, _ = client.call("POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict", deep)
    assert status == 400


def test_repeated_keys_of_an_applied_manifest_are_reported(client: Client) -> None:
    """With their line; strict requests are rejected, others get a warning."""
    body = b"apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\nspec:\n  podCIDR: a\n  podCIDR: b\n"
    media = "application/apply-patch+yaml"
    path = "/api/v1/nodes/n1?fieldManager=me&fieldValidation"
    status, refused = client.call("PATCH", f"{path}=Strict", body, content_type=media)
    expected = 'yaml: unmarshal errors:\n  line 7: key "podCIDR" already set in map'
    assert (status, refused["message"]) == (
        400,
        f"error strict decoding YAML: error converting YAML to JSON: {expected}",
    )
    response = client.raw("PATCH", f"{path}=Warn", body, {"Content-Type": media})
    assert (response.status, b'"podCIDR":"b"' in response.read()) == (201, True)
    assert "already set in map" in (response.getheader("Warning") or "")


@pytest.mark.parametrize("text", ["\x9b", "\\ud83d\\ude00"], ids=["control character", "surrogate pair"])
def test_applied_json_that_is_not_yaml_is_rejected(client: Client, text: str) -> None:
    """YAML has neither control characters nor surrogates; strict requests are decoded as YAML."""
    body = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{"k":"{text}"}}}}'.encode()
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=me&fieldValidation=Strict"
    status, refused = client.call("PATCH", path, body, content_type="application/apply-patch+yaml")
    assert (status, refused["message"].partition(":")[0]) == (400, "error decoding YAML")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_repeated_fields_are_rejected_when_strict(client: Client, method: str) -> None:
    """Otherwise the last one counts."""
    nodes = "/api/v1/nodes"
    body = (
        b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","name":"b"},'
        b'"spec":{"taints":[{"key":"k","key":"l","effect":"NoSchedule"}]}}'
    )
    if method != "POST":
        client.create(nodes, {"metadata": {"name": "b"}})
    path = nodes if method == "POST" else f"{nodes}/b"
    media = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
    status, refused = client.call(method, f"{path}?fieldValidation=Strict", body, content_type=media)
    assert (status, refused["reason"]) == (400, "BadRequest")
    assert refused["message"].endswith(
        'strict decoding error: duplicate field "metadata.name", duplicate field "spec.taints[0].key"'
    )
    response = client.raw(method, f"{path}?fieldValidation=Warn", body, {"Content-Type": media})
    assert (response.status, b'"key":"l"' in response.read()) == (201 if method == "POST" else 200, True)
    assert '299 - "duplicate field \\"metadata.name\\""' in (response.getheader("Warning") or "")


def test_unknown_fields_can_be_ignored(client: Client) -> None:
    """Without a warning."""
    body = b'{"metadata":{"name":"a"},"colour":1,"spec":{"containers":[{"name":"c","image":"i"}]}}'
    response = client.raw("POST", f"{PODS}?fieldValidation=Ignore", body)
    response.read()
    assert (response.status, response.getheader("Warning")) == (201, None)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hostNetwork": "yes"}, 'spec.hostNetwork: must be true or false, not "yes"'),
        ({"priority": 1.5}, "spec.priority: must be a whole number, not 1.5"),
        ({"priority": 2**31}, "spec.priority: must be a whole number"),
        ({"containers": {"a": 1}}, "spec.containers: must be a list, not an object"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a: must be a string, not 1"),
        ({"overhead": {"cpu": "much"}}, 'spec.overhead.cpu: must be a quantity such as 100m or 2Gi, not "much"'),
    ],
)
def test_a_wrong_type_is_a_bad_request(client: Client, spec: dict[str, Any], expected: str) -> None:
    """The 400 response names the field, the expected and the actual type."""
    status, body = client.call("POST", PODS, pod("a", **spec))
    assert (status, body["reason"]) == (400, "BadRequest")
    assert expected in body["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]}, "spec.containers[1].name"),
        ({"containers": [{"name": "A", "image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, "spec.tolerations[0].effect"),
        ({"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
         "spec.topologySpreadConstraints[0].maxSkew"),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
         "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector"),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "spec.volumes[1].name"),
        ({"nodeName": "n", "schedulingGates": [{"name": "g"}]}, "spec.nodeName"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_unprocessable(client: Client, spec: dict[str, Any], field: str) -> None:
    """The 422 response has a cause for the field."""
    status, body = client.call("POST", PODS, pod("a", **spec))
    assert (status, body["reason"]) == (422, "Invalid")
    assert causes(body) == [field]


def test_requests_may_not_exceed_limits(client: Client) -> None:
    """They are compared as amounts, not as strings."""
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1001m"}, "limits": {"cpu": "1"}}
    status, body = client.call("POST", PODS, wanted)
    assert status == 422
    assert 'Invalid value: "1001m": must be less than or equal to cpu limit of 1' in body["message"]


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254])
def test_names_must_be_valid(client: Client, name: str) -> None:
    """The 422 response names metadata.name."""
    status, body = client.call("POST", PODS, {**pod(), "metadata": {"name": name}})
    assert (status, causes(body)) == (422, ["metadata.name"])


def test_a_body_for_another_kind_is_refused(client: Client) -> None:
    """apiVersion and kind must match the path."""
    status, body = client.call("POST", PODS, {**pod(), "kind": "Node"})
    assert status == 400
    assert "kind in the body is 'Node'" in body["message"]


def test_another_namespace_than_the_path_is_refused(client: Client) -> None:
    """Neither of the two takes precedence."""
    wanted = pod()
    wanted["metadata"]["namespace"] = "other"
    status, body = client.call("POST", PODS, wanted)
    assert status == 400
    assert "does not match the namespace sent on the request" in body["message"]


@pytest.mark.parametrize(
    ("body", "expected"), [(b"{", "not valid JSON"), (b"[1]", "not an object"), (b'"\xff"', "not valid JSON")]
)
def test_the_body_must_be_an_object(client: Client, body: bytes, expected: str) -> None:
    """Other bodies get a 400 response."""
    status, answer = client.call("POST", PODS, body)
    assert status == 400
    assert expected in answer["message"]


def test_quantities_are_stored_in_canonical_form(client: Client) -> None:
    """As in Kubernetes; numbers become strings."""
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 0.5, "memory": "1024Mi", "x.io/y": 3}}
    created = client.create(PODS, wanted)
    assert created["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi", "x.io/y": "3"}


def test_a_selector_must_match_the_template(client: Client) -> None:
    """Otherwise a workload would never find its pods."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"app": "b"}}, "spec": pod()["spec"]}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template}}
    status, answer = client.call("POST", path, body)
    assert (status, causes(answer)) == (422, ["spec.template.metadata.labels"])

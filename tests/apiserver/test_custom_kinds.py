"""Custom resources: served once their definition is established, validated by its schema, deleted with it."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.apiserver.crontabs import (
    CRONTABS,
    DEFINITIONS,
    GROUP,
    NAME,
    V1,
    condition,
    define,
    definition,
)
from support.apiserver.running import Client, Running

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OLD = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": ANYTHING}}


def crontab(name: str = "a", **spec: Any) -> dict[str, Any]:
    """Return a CronTab."""
    return {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", **spec}}


def test_an_established_kind_is_served_and_described(plane: Running) -> None:
    """In discovery, OpenAPI and tables, with its field selectors."""
    client = define(plane)
    found = client.get(f"{GROUP}/v1")["resources"]
    assert [one["name"] for one in found] == ["crontabs", "crontabs/status", "crontabs/scale"]
    assert (found[0]["shortNames"], found[0]["singularName"]) == (["ct"], "crontab")
    assert "stable.example.com" in [one["name"] for one in client.get("/apis")["groups"]]
    assert condition(client.get(f"{DEFINITIONS}/{NAME}"), "NamesAccepted") == "True"
    schemas = client.get("/openapi/v3/apis/stable.example.com/v1")["components"]["schemas"]
    described = schemas["com.example.stable.v1.CronTab"]
    assert described["properties"]["spec"]["properties"]["schedule"]["description"] == "When."
    assert described["x-kubernetes-group-version-kind"][0]["kind"] == "CronTab"
    assert described["properties"]["apiVersion"]["description"]
    assert "com.example.stable.v1.CronTab" in client.get("/openapi/v2")["definitions"]
    client.create(CRONTABS, crontab("a", ports=[{"name": "web", "port": 80}]))
    client.create(CRONTABS, crontab("b", image="other"))
    table = client.get(CRONTABS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Schedule", "Port", "Age"]
    assert [row["cells"][:3] for row in table["rows"]] == [["a", "* * * * *", 80], ["b", "* * * * *", None]]
    chosen = client.get(f"{CRONTABS}?fieldSelector=spec.image=other")["items"]
    assert [one["metadata"]["name"] for one in chosen] == ["b"]
    assert client.get(CRONTABS)["kind"] == "CronTabList"


def test_objects_get_defaults_and_lose_unknown_fields(plane: Running) -> None:
    """Except where the schema preserves them; strict requests are rejected."""
    client = define(plane)
    made = client.create(CRONTABS, {**crontab("a", odd=1, free={"x": {"y": 1}}, mode=None), "extra": True})
    assert made["spec"] == {
        "schedule": "* * * * *",
        "free": {"x": {"y": 1}},
        "mode": None,
        "image": "busybox",
        "replicas": 1,
    }
    assert "extra" not in made
    status, rejected = client.call("POST", f"{CRONTABS}?fieldValidation=Strict", crontab("b", odd=1))
    assert (status, 'strict decoding error: unknown field "spec.odd"' in rejected["message"]) == (400, True)


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"schedule": 5}, "spec.schedule", 'Invalid value: "integer": spec.schedule in body must be of type string'),
        ({"schedule": "x"}, "spec.schedule", 'Invalid value: "x": spec.schedule in body should match \'^'),
        (
            {"replicas": 11},
            "spec.replicas",
            "Invalid value: 11: spec.replicas in body should be less than",
        ),
        ({"mode": "odd"}, "spec.mode", 'Unsupported value: "odd": supported values: "fast", "slow"'),
        ({"tags": ["a", "a"]}, "spec.tags[1]", 'Duplicate value: "a"'),
        ({"ports": [{"name": "a"}, {"name": "a"}]}, "spec.ports[1]", 'Duplicate value: {"name":"a"}'),
        ({"limits": {"a": 1, "b": "2", "c": 1.5}}, "spec.limits.c", 'Invalid value: "number": spec.limits.c in body'),
    ],
)
def test_values_are_validated_by_the_schema(plane: Running, spec: Any, field: str, message: str) -> None:
    """The messages are those of Kubernetes."""
    client = define(plane)
    status, rejected = client.call("POST", CRONTABS, crontab(**spec))
    (cause,) = rejected["details"]["causes"]
    assert (status, cause["field"]) == (422, field)
    assert cause["message"].startswith(message)


def test_status_and_scale_are_subresources(plane: Running) -> None:
    """A write of the object keeps the status, a write of the status keeps the spec."""
    client = define(plane)
    made = client.create(CRONTABS, {**crontab(), "status": {"replicas": 7}})
    assert ("status" in made, made["metadata"]["generation"]) == (False, 1)
    client.patch(f"{CRONTABS}/a/status", {"status": {"replicas": 2, "selector": "a=b"}, "spec": {"replicas": 9}})
    found = client.patch(f"{CRONTABS}/a/scale", {"spec": {"replicas": 3}})
    assert (found["spec"], found["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    whole = client.get(f"{CRONTABS}/a")
    assert (whole["spec"]["replicas"], whole["metadata"]["generation"]) == (3, 2)


def test_versions_share_their_objects(plane: Running) -> None:
    """Only the apiVersion differs; a deprecated version returns a warning."""
    client = define(plane, V1, {**OLD, "deprecated": True})
    client.create(CRONTABS, crontab())
    response = client.raw("GET", f"{GROUP}/v1beta1/namespaces/default/crontabs/a")
    assert b'"apiVersion":"stable.example.com/v1beta1"' in response.read()
    assert response.getheader("Warning") == '299 - "stable.example.com/v1beta1 CronTab is deprecated"'
    assert client.get("/apis/stable.example.com")["preferredVersion"]["version"] == "v1"
    watch = plane.watch(f"{GROUP}/v1beta1/crontabs?watch=1")
    assert watch.next()["object"]["apiVersion"] == "stable.example.com/v1beta1"


def test_strategic_merge_is_not_for_custom_kinds(plane: Running) -> None:
    """415, so that clients use another patch type; apply merges lists by their keys."""
    client = define(plane)
    client.create(CRONTABS, crontab(ports=[{"name": "a", "port": 1}]))
    media = "application/strategic-merge-patch+json"
    assert client.call("PATCH", f"{CRONTABS}/a", {}, content_type=media)[0] == 415
    applied = {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "spec": {"schedule": "* * * * *", "ports": [{"name": "b", "port": 2}]},
    }
    merged = client.patch(f"{CRONTABS}/a?fieldManager=me", applied, "apply-patch+yaml")
    assert sorted(one["name"] for one in merged["spec"]["ports"]) == ["a", "b"]


def test_deleting_a_definition_deletes_its_objects(plane: Running) -> None:
    """It waits for those with finalizers; then the kind is unknown."""
    client = define(plane)
    client.create(CRONTABS, crontab("a"))
    body = crontab("b")
    client.create(CRONTABS, {**body, "metadata": {"name": "b", "finalizers": ["example.com/wait"]}})
    watch = plane.watch(f"{DEFINITIONS}?watch=1")
    assert client.delete(f"{DEFINITIONS}/{NAME}")["metadata"]["finalizers"]
    watch.until(lambda event: condition(event["object"], "Terminating") == "True")
    assert [one["metadata"]["name"] for one in client.get(CRONTABS)["items"]] == ["b"]
    client.patch(f"{CRONTABS}/b", {"metadata": {"finalizers": None}})
    watch.until(lambda event: event["type"] == "DELETED")
    define(plane)
    assert client.get(CRONTABS)["items"] == []


def test_objects_follow_a_schema_that_changes(plane: Running) -> None:
    """Objects get new defaults and lose removed fields, without a new version."""
    client = define(plane)
    made = client.create(CRONTABS, crontab(mode="fast"))
    changed = copy.deepcopy(V1)
    properties = changed["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]  # type: ignore[index]
    del properties["mode"]
    properties["colour"] = {"type": "string", "default": "red"}
    client.patch(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": [changed]}})
    found = client.get(f"{CRONTABS}/a")
    assert (found["spec"].get("colour"), "mode" in found["spec"]) == ("red", False)
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_watches_end_with_their_kind(plane: Running) -> None:
    """So that clients discover the kind again."""
    client = define(plane)
    watch = plane.watch(f"{CRONTABS}?watch=1")
    client.delete(f"{DEFINITIONS}/{NAME}")
    assert watch.next() is None


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_custom_objects_are_garbage_collected(start: Callable[..., Running], policy: str) -> None:
    """As owners and as dependents."""
    plane = start(controllers=True)
    client = define(plane)
    maps = "/api/v1/namespaces/default/configmaps"

    def owned(name: str, owner: Any, kind: str, api_version: str) -> dict[str, Any]:
        uid, owner_name = owner["metadata"]["uid"], owner["metadata"]["name"]
        reference = {
            "apiVersion": api_version,
            "kind": kind,
            "name": owner_name,
            "uid": uid,
            "blockOwnerDeletion": True,
        }
        return {"name": name, "ownerReferences": [reference]}

    root = client.create(maps, {"metadata": {"name": "root"}})
    middle = {**crontab(), "metadata": owned("middle", root, "ConfigMap", "v1")}
    made = client.create(CRONTABS, middle)
    client.create(maps, {"metadata": owned("leaf", made, "CronTab", "stable.example.com/v1")})
    watch = plane.watch(f"{maps}?watch=1&fieldSelector=metadata.name=leaf")
    client.delete(f"{maps}/root?propagationPolicy={policy}")
    watch.until(lambda event: event["type"] == "DELETED")


def test_custom_objects_are_counted_by_quotas(start: Callable[..., Running]) -> None:
    """Rejected above the limit, admitted after a deletion."""
    plane = start(controllers=True)
    client = define(plane)
    quotas = "/api/v1/namespaces/default/resourcequotas"
    watch = plane.watch(f"{quotas}?watch=1")

    def used(amount: str) -> None:
        watch.until(lambda event: event["object"].get("status", {}).get("used") == {f"count/{NAME}": amount})

    client.create(CRONTABS, crontab())
    client.create(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {f"count/{NAME}": "1"}}})
    used("1")
    status, rejected = client.call("POST", CRONTABS, crontab("b"))
    assert (status, "exceeded quota: q" in rejected["message"]) == (403, True)
    client.delete(f"{CRONTABS}/a")
    used("0")
    client.create(CRONTABS, crontab("b"))


def test_custom_orphans_of_an_earlier_run_are_collected(start: Callable[..., Running], tmp_path: Path) -> None:
    """Their owner was deleted while no controller was running."""
    plane = start(data_dir=tmp_path, controllers=False)
    client = define(plane)
    lost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "lost", "uid": "lost"}
    client.create(CRONTABS, {**crontab(), "metadata": {"name": "a", "ownerReferences": [lost]}})
    plane.stop()
    plane = start(data_dir=tmp_path, controllers=True)
    watch = plane.watch(f"{CRONTABS}?watch=1")
    if plane.client().get(CRONTABS)["items"]:
        watch.until(lambda event: event["type"] == "DELETED")


def test_custom_objects_outlive_a_restart(start: Callable[..., Running], tmp_path: Path) -> None:
    """Definitions and objects are restored, including selectable fields."""
    plane = start(data_dir=tmp_path)
    define(plane).create(CRONTABS, crontab(image="x"))
    plane.stop()
    client = start(data_dir=tmp_path).client()
    chosen = client.get(f"{CRONTABS}?fieldSelector=spec.image=x")["items"]
    assert [one["metadata"]["name"] for one in chosen] == ["a"]


def test_names_in_use_are_not_accepted(plane: Running) -> None:
    """The definition has a condition, and is not served."""
    client = define(plane)
    other = definition(V1)
    other["metadata"]["name"] = "tabs.stable.example.com"
    other["spec"]["names"] = {"plural": "tabs", "kind": "CronTab"}
    watch = plane.watch(f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name=tabs.stable.example.com")
    client.create(DEFINITIONS, other)
    found = watch.until(lambda event: condition(event["object"], "NamesAccepted") == "False")["object"]
    reasons = {one["type"]: one["reason"] for one in found["status"]["conditions"]}
    assert reasons == {"NamesAccepted": "ListKindConflict", "Established": "NotAccepted"}
    assert client.call("GET", f"{GROUP}/v1/tabs")[0] == 404


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"group": "example.com"}, "metadata.name", 'must be spec.names.plural+"."+spec.group'),
        ({"versions": [OLD]}, "spec.versions", "must have exactly one version marked as storage version"),
        (
            {"versions": [{**V1, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}}]},
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].type",
            "Required value: must not be empty for specified object fields",
        ),
        ({"scope": "Galaxy"}, "spec.scope", 'Unsupported value: "Galaxy"'),
        ({"conversion": {"strategy": "Webhook"}}, "spec.conversion.strategy", "does not call webhooks"),
    ],
)
def test_invalid_definitions_are_rejected(client: Client, change: Any, field: str, message: str) -> None:
    """With the field and the error."""
    status, rejected = client.call("POST", DEFINITIONS, definition(**change))
    assert status == 422
    assert any(one["field"] == field and message in one["message"] for one in rejected["details"]["causes"]), rejected

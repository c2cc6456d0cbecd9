"""Discovery of resources, one by one and aggregated, and their schemas."""

import json
from typing import Any

from kubestow.apiserver.resources import RESOURCES
from support.apiserver.running import Client

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def test_every_resource_is_discovered(client: Client) -> None:
    """The resources by group are those of the aggregated form."""
    plain = set()
    for group in client.get("/apis")["groups"]:
        for version in group["versions"]:
            listed = client.get(f"/apis/{version['groupVersion']}")
            plain |= {(listed["groupVersion"], one["name"]) for one in listed["resources"] if "/" not in one["name"]}
    plain |= {("v1", one["name"]) for one in client.get("/api/v1")["resources"] if "/" not in one["name"]}
    assert plain == {(one.api_version, one.plural) for one in RESOURCES}
    together = set()
    for path in ("/api", "/apis"):
        for group in client.get(path, accept=AGGREGATED)["items"]:
            name = group["metadata"]["name"]
            for version in group["versions"]:
                api_version = f"{name}/{version['version']}" if name else version["version"]
                together |= {(api_version, one["resource"]) for one in version["resources"]}
    assert together == plain


def test_schemas_are_complete(client: Client) -> None:
    """Every reference is to a schema in the same document, and each kind is marked."""
    kinds = set()
    for entry in client.get("/openapi/v3")["paths"].values():
        document = client.get(entry["serverRelativeURL"])
        schemas = document["components"]["schemas"]
        for schema in schemas.values():
            kinds |= {
                (one["group"], one["version"], one["kind"]) for one in schema.get("x-kubernetes-group-version-kind", ())
            }
            assert {reference.rsplit("/", 1)[1] for reference in references(schema)} <= set(schemas)
    assert kinds == {(one.group, one.version, one.kind) for one in RESOURCES}


def references(value: Any) -> list[str]:
    """Yield all $ref inside a value."""
    if isinstance(value, dict):
        return (
            [value["$ref"]]
            if isinstance(value.get("$ref"), str)
            else [one for inner in value.values() for one in references(inner)]
        )
    return [one for inner in value for one in references(inner)] if isinstance(value, list) else []


def test_merge_keys_are_published(client: Client) -> None:
    """kubectl builds its patches from them."""
    document = client.get("/openapi/v3/api/v1")
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_patches_have_a_field_validation_parameter(client: Client) -> None:
    """By this parameter, kubectl decides whether the server validates fields."""
    document = client.get("/openapi/v3/apis/apps/v1")
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {"dryRun", "fieldValidation"} <= {one["name"] for one in patch["parameters"]}
    assert "deployments" in json.dumps(client.get("/openapi/v2")["paths"])


def test_an_unknown_path_is_not_found(client: Client) -> None:
    """404 with a Status."""
    for path in ("/apis/nowhere/v1", "/apis/apps/v9/deployments", "/api/v1/things", "/api/v1/namespaces/default/nodes"):
        status, body = client.call("GET", path)
        assert (status, body["reason"]) == (404, "NotFound")

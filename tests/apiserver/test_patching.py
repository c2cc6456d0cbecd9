"""Patches: JSON, merge, strategic merge and server-side apply."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubestow.apiserver.patches import fieldsets, merge_patch, strategic
from kubestow.apiserver.schema.reader import struct_named
from support.apiserver.running import Client, pod

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JSON = "json-patch+json"
STRATEGIC = "strategic-merge-patch+json"
APPLY = "apply-patch+yaml"
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def deployment(image: str = "i:1", **spec: Any) -> dict[str, Any]:
    """Return a small deployment."""
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template, **spec},
    }


def test_json_patch(client: Client) -> None:
    """Operations are applied in order; a failed test rejects all of them, and the error names the operation."""
    client.create(PODS, pod())
    operations = [
        {"op": "test", "path": "/metadata/labels/app", "value": "a"},
        {"op": "add", "path": "/metadata/labels/example.com~1x", "value": "y"},
        {"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/was"},
    ]
    patched = client.patch(f"{PODS}/a", operations, JSON)
    assert patched["metadata"]["labels"] == {"example.com/x": "y", "was": "a"}
    status, body = client.call("PATCH", f"{PODS}/a", operations, content_type=f"application/{JSON}")
    assert status == 422
    assert "operation 0 (test /metadata/labels/app)" in body["message"]


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "test", "path": "/metadata/name", "value": "x"}, "the test failed: the value differs"),
        ({"op": "remove", "path": "/metadata/nothing"}, "can't remove a non-existent object 'nothing'"),
        ({"op": "add", "path": "/spec/taints/7", "value": {}}, "can't insert outside of list"),
        ({"op": "move", "path": "/spec/taints", "from": "/spec"}, "Cannot move values into their own children"),
        ({"op": "remove", "path": "/spec/taints/00"}, "'00' is not a valid sequence index"),
        ({"op": "remove", "path": ""}, "can't remove the whole document"),
    ],
)
def test_a_failed_json_patch_is_explained(client: Client, operation: dict[str, Any], message: str) -> None:
    """The error contains the operation, its path and the reason."""
    taints = [{"key": "k", "effect": "NoSchedule"}]
    client.create("/api/v1/nodes", {"metadata": {"name": "patched"}, "spec": {"taints": taints}})
    status, rejected = client.call(
        "PATCH", "/api/v1/nodes/patched", [operation], content_type="application/json-patch+json"
    )
    assert status == 422
    assert rejected["message"] == f"JSON patch operation 0 ({operation['op']} {operation['path']}): {message}"


def test_merge_patch_replaces_lists_and_null_removes(client: Client) -> None:
    """RFC 7386."""
    client.create(DEPLOYMENTS, deployment())
    change = {"metadata": {"labels": {"x": "y"}}, "spec": {"replicas": 3}}
    assert client.patch(f"{DEPLOYMENTS}/d", change)["spec"]["replicas"] == 3
    assert "labels" not in client.patch(f"{DEPLOYMENTS}/d", {"metadata": {"labels": None}})["metadata"]


def test_strategic_merge_keeps_other_items(client: Client) -> None:
    """Containers and environment variables are merged by name; $patch: delete removes one."""
    client.create(DEPLOYMENTS, deployment())
    extra = [{"name": "side", "image": "s:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]
    patched = client.patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": extra}}}}, STRATEGIC)
    assert {one["name"] for one in patched["spec"]["template"]["spec"]["containers"]} == {"c", "side"}
    change = [{"name": "side", "env": [{"name": "A", "$patch": "delete"}]}, {"name": "c", "image": "i:2"}]
    patched = client.patch(f"{DEPLOYMENTS}/d", {"spec": {"template": {"spec": {"containers": change}}}}, STRATEGIC)
    by_name = {one["name"]: one for one in patched["spec"]["template"]["spec"]["containers"]}
    assert by_name["side"]["env"] == [{"name": "B", "value": "2"}]
    assert (by_name["side"]["image"], by_name["c"]["image"]) == ("s:1", "i:2")


def test_a_status_patch_of_the_scheduler(client: Client) -> None:
    """Conditions are merged by type, with an explicit order, as kube-scheduler writes them."""
    client.create(PODS, pod())
    for status in ("False", "True"):
        condition = {"type": "PodScheduled", "status": status, "lastProbeTime": None}
        client.patch(f"{PODS}/a/status", {"status": {"conditions": [condition]}}, STRATEGIC)
    change = {
        "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}],
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    patched = client.patch(f"{PODS}/a/status", {"status": change}, STRATEGIC)
    assert [(one["type"], one["status"]) for one in patched["status"]["conditions"]] == [
        ("PodScheduled", "True"),
        ("DisruptionTarget", "True"),
    ]


def test_items_added_by_a_strategic_patch_come_first(client: Client) -> None:
    """New items precede those that the patch does not name; old ones keep their positions."""
    client.create(DEPLOYMENTS, deployment())
    added = [{"name": "new", "image": "i:2"}]
    patch = {"spec": {"template": {"spec": {"containers": added}}}}
    spec = client.patch(f"{DEPLOYMENTS}/d", patch, STRATEGIC)["spec"]["template"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["new", "c"]
    patch["spec"]["template"]["spec"]["containers"] = [{"name": "c", "image": "i:3"}]
    spec = client.patch(f"{DEPLOYMENTS}/d", patch, STRATEGIC)["spec"]["template"]["spec"]
    assert [one["image"] for one in spec["containers"]] == ["i:2", "i:3"]


def test_strategic_directives() -> None:
    """$patch: replace, $retainKeys, additions to and deletions from primitive lists."""
    schema = struct_named("apps.v1", "Deployment")
    live = {
        "metadata": {"finalizers": ["a", "b"]},
        "spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
    }
    patch = {
        "metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
        "spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}, "selector": {"$patch": "replace", "x": 1}},
    }
    assert strategic.apply(live, patch, schema) == {
        "metadata": {"finalizers": ["c", "b"]},
        "spec": {"strategy": {"type": "Recreate"}, "selector": {"x": 1}},
    }


def test_a_list_item_without_its_key_is_rejected(client: Client) -> None:
    """The message names list and key."""
    client.create(PODS, pod())
    change = {"spec": {"containers": [{"image": "x"}]}}
    status, body = client.call("PATCH", f"{PODS}/a", change, content_type=f"application/{STRATEGIC}")
    assert status == 400
    assert "`containers` lacks its key `name`" in body["message"]


def apply(client: Client, body: dict[str, Any], manager: str, force: bool = False) -> tuple[int, Any]:
    """Apply a deployment."""
    query = f"fieldManager={manager}" + ("&force=true" if force else "")
    return client.call("PATCH", f"{DEPLOYMENTS}/d?{query}", body, content_type=f"application/{APPLY}")


def test_apply_creates_and_records_the_manager(client: Client) -> None:
    """201 the first time, 200 after; managedFields name the manager."""
    assert apply(client, deployment(), "me")[0] == 201
    status, applied = apply(client, deployment("i:2"), "me")
    assert status == 200
    (line,) = [one for one in applied["metadata"]["managedFields"] if one["manager"] == "me"]
    assert line["operation"] == "Apply"
    containers = line["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert containers['k:{"name":"c"}'] == {".": {}, "f:name": {}, "f:image": {}}


def test_apply_conflicts_with_other_owners(client: Client) -> None:
    """A different value of a field that another manager owns is a conflict that names both, unless forced."""
    apply(client, deployment(replicas=1), "one")
    status, body = apply(client, deployment(replicas=2), "two")
    assert (status, body["reason"]) == (409, "Conflict")
    assert body["message"] == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    status, applied = apply(client, deployment(replicas=2), "two", force=True)
    assert (status, applied["spec"]["replicas"]) == (200, 2)


def test_apply_removes_omitted_fields(client: Client) -> None:
    """Fields that only this manager owned are removed, others are kept."""
    labelled = deployment()
    labelled["metadata"]["labels"] = {"a": "1", "b": "2"}
    apply(client, labelled, "one")
    other = deployment()
    other["metadata"]["labels"] = {"b": "2"}
    apply(client, other, "two")
    _, applied = apply(client, deployment(), "one")
    assert applied["metadata"]["labels"] == {"b": "2"}


def test_an_update_takes_fields_over(client: Client) -> None:
    """The manager of the update owns the changed fields, which is a conflict for apply."""
    apply(client, deployment(replicas=1), "one")
    client.patch(f"{DEPLOYMENTS}/d?fieldManager=scaler", {"spec": {"replicas": 5}})
    status, body = apply(client, deployment(replicas=1), "one")
    assert status == 409
    assert 'conflict with "scaler" using apps/v1: .spec.replicas' in body["message"]


def test_the_creator_owns_all_fields(client: Client) -> None:
    """If the request names a manager: equal values are no conflict, others are, including defaults."""
    client.create(f"{DEPLOYMENTS}?fieldManager=maker", deployment(replicas=1))
    assert apply(client, deployment(replicas=1), "me")[0] == 200
    client.patch(f"{DEPLOYMENTS}/d/scale?fieldManager=scaler", {"spec": {"replicas": 4}})
    status, body = apply(client, {**deployment("i:9", replicas=2)}, "me")
    assert status == 409
    assert body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "maker" using apps/v1:\n'
        '- .spec.template.spec.containers[name="c"].image\n'
        'conflicts with "scaler" with subresource "scale" using apps/v1:\n'
        "- .spec.replicas"
    )


def test_the_first_apply_conflicts_with_existing_fields(client: Client) -> None:
    """Fields of an object without managers belong to before-first-apply."""
    client.create(DEPLOYMENTS, deployment(replicas=1))
    assert "managedFields" not in client.get(f"{DEPLOYMENTS}/d")["metadata"]
    status, body = apply(client, deployment(replicas=2), "me")
    assert (status, 'conflict with "before-first-apply" using apps/v1' in body["message"]) == (409, True)
    assert apply(client, deployment(replicas=2), "me", force=True)[1]["spec"]["replicas"] == 2


@pytest.mark.parametrize("given", [[], [{}]])
def test_managed_fields_can_be_reset(client: Client, given: list[Any]) -> None:
    """By an empty list or an empty entry; invalid entries have no effect."""
    apply(client, deployment(), "me")
    patch = {"metadata": {"managedFields": [{"manager": "x", "operation": "Guess"}]}}
    assert client.patch(f"{DEPLOYMENTS}/d", patch)["metadata"]["managedFields"][0]["manager"] == "me"
    cleared = client.patch(f"{DEPLOYMENTS}/d", {"metadata": {"managedFields": given}})
    assert "managedFields" not in cleared["metadata"]


def test_lists_are_applied_by_their_type(client: Client) -> None:
    """As a map, as a set, or as a whole; items are removed by the manager that applied them."""
    applied = deployment()
    applied["metadata"]["finalizers"] = ["example.com/one"]
    spec = applied["spec"]["template"]["spec"]
    spec["containers"][0] |= {"env": [{"name": "A", "value": "1"}], "args": ["a", "b"]}
    apply(client, applied, "one")
    other = deployment()
    other["metadata"]["finalizers"] = ["example.com/two"]
    other["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "B", "value": "2"}]
    _, both = apply(client, other, "two")
    container = both["spec"]["template"]["spec"]["containers"][0]
    assert [one["name"] for one in container["env"]] == ["B", "A"]
    assert sorted(both["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]
    spec["containers"][0] |= {"env": [], "args": ["c"]}
    applied["metadata"]["finalizers"] = []
    _, rest = apply(client, applied, "one")
    container = rest["spec"]["template"]["spec"]["containers"][0]
    assert ([one["name"] for one in container["env"]], container["args"]) == (["B"], ["c"])
    assert rest["metadata"]["finalizers"] == ["example.com/two"]


@pytest.mark.parametrize("media", ["application/json", "text/plain"])
def test_an_unknown_patch_type_is_rejected(client: Client, media: str) -> None:
    """415 lists the supported types."""
    client.create(PODS, pod())
    status, body = client.call("PATCH", f"{PODS}/a", {}, content_type=media)
    assert status == 415
    assert "application/merge-patch+json" in body["message"]


TREES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), inner, max_size=3), max_leaves=8
)


@QUICK
@given(TREES, TREES)
def test_field_sets_behave_like_sets(left: dict[str, Any], right: dict[str, Any]) -> None:
    """Removed fields are missing; a set minus itself is empty, and its union with itself is unchanged."""
    assert fieldsets.union(left, left) == left
    assert fieldsets.difference(left, left) == {}
    assert fieldsets.union(left, right) == fieldsets.union(right, left)
    assert fieldsets.difference(fieldsets.difference(left, right), right) == fieldsets.difference(left, right)


DOCUMENTS = st.recursive(
    st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(st.dictionaries(st.sampled_from("abc"), DOCUMENTS), st.dictionaries(st.sampled_from("abc"), DOCUMENTS))
def test_a_merge_patch_twice_is_the_same_as_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    """Merging is idempotent."""
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply(dict(once), patch) == once


def test_an_unknown_field_cannot_be_applied(client: Client) -> None:
    """It would have no owner."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "colour": "red"}, "shape": "round"}
    path = "/api/v1/namespaces/default/configmaps/x?fieldManager=me"
    status, rejected = client.call("PATCH", path, body, content_type="application/apply-patch+yaml")
    assert status == 400
    assert rejected["message"].startswith("failed to create typed patch object (x; v1, Kind=ConfigMap):")
    assert ".metadata.colour: field not declared in schema" in rejected["message"]
    assert ".shape: field not declared in schema" in rejected["message"]

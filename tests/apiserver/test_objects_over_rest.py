"""Creating, reading, changing and deleting objects over HTTP."""

import re
from typing import Any

import pytest

from support.apiserver.running import Client, pod

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


def test_a_created_object_has_identity_version_and_time(client: Client) -> None:
    """The server sets uid, version, time and generation, overriding those in the request."""
    wanted = pod()
    wanted["metadata"] |= {"uid": "mine", "resourceVersion": "77", "generation": 9}
    created = client.create(PODS, wanted)
    metadata = created["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert metadata["resourceVersion"].isdecimal()
    assert metadata["generation"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert client.get(f"{PODS}/a") == created


def test_versions_come_from_one_counter(client: Client) -> None:
    """A later write has a larger version, for all resources."""
    first = client.create(PODS, pod())
    second = client.create(NODES, {"metadata": {"name": "n"}})
    assert int(second["metadata"]["resourceVersion"]) == int(first["metadata"]["resourceVersion"]) + 1


def test_generate_name_is_completed(client: Client) -> None:
    """Names with the same prefix do not collide."""
    wanted = pod()
    wanted["metadata"] = {"generateName": "web-"}
    names = {client.create(PODS, wanted)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch("web-[a-z0-9]{5}", name) for name in names)


def test_a_second_object_of_a_name_is_refused(client: Client) -> None:
    """409 AlreadyExists names the object."""
    client.create(PODS, pod())
    status, body = client.call("POST", PODS, pod())
    assert (status, body["reason"]) == (409, "AlreadyExists")
    assert body["message"] == 'pods "a" already exists'


def test_a_missing_namespace_is_named(client: Client) -> None:
    """Objects cannot be created in a namespace that does not exist."""
    status, body = client.call("POST", "/api/v1/namespaces/nowhere/pods", pod())
    assert (status, body["message"]) == (404, 'namespaces "nowhere" not found')


def test_an_update_of_an_old_version_conflicts(client: Client) -> None:
    """Optimistic concurrency: the version sent must be the current one; 0 matches any."""
    created = client.create(NODES, {"metadata": {"name": "n"}})
    created["metadata"]["labels"] = {"a": "b"}
    status, updated = client.call("PUT", f"{NODES}/n", created)
    assert status == 200
    assert int(updated["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    status, body = client.call("PUT", f"{NODES}/n", created)
    assert (status, body["reason"]) == (409, "Conflict")
    created["metadata"]["resourceVersion"] = "0"
    assert client.call("PUT", f"{NODES}/n", created)[0] == 200


def test_an_update_that_changes_nothing_is_no_write(client: Client) -> None:
    """The version stays the same."""
    created = client.create(NODES, {"metadata": {"name": "n"}})
    assert client.call("PUT", f"{NODES}/n", created) == (200, created)


def test_a_write_of_the_status_may_leave_the_spec_empty(client: Client) -> None:
    """Go clients always send a spec."""
    client.create(PODS, pod())
    patch = {"spec": {"containers": None}, "status": {"phase": "Running"}}
    patched = client.patch(f"{PODS}/a/status", patch)
    assert (patched["status"]["phase"], len(patched["spec"]["containers"])) == ("Running", 1)


def test_status_and_spec_are_written_apart(client: Client) -> None:
    """A write of the object keeps the status, a write of the status keeps the spec."""
    created = client.create(PODS, pod())
    created["status"]["phase"] = "Running"
    created["spec"]["priority"] = 7
    status, updated = client.call("PUT", f"{PODS}/a/status", created)
    assert status == 200
    assert updated["status"]["phase"] == "Running"
    assert updated["spec"]["priority"] == 0
    updated["status"]["phase"] = "Failed"
    status, again = client.call("PUT", f"{PODS}/a", updated)
    assert (status, again["status"]["phase"]) == (200, "Running")


@pytest.mark.parametrize(
    ("path", "body", "changed"),
    [
        (PODS, pod(), {"labels", "annotations"}),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            {
                "metadata": {"name": "a"},
                "spec": {
                    "selector": {"matchLabels": {"app": "a"}},
                    "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod()["spec"]},
                },
            },
            {"annotations"},
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            {
                "metadata": {"name": "a"},
                "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
            },
            set(),
        ),
    ],
)
def test_metadata_may_change_along_with_the_status(
    client: Client, path: str, body: dict[str, Any], changed: set[str]
) -> None:
    """The revision of a Deployment, for example, is an annotation that is written with the status."""
    client.create(path, body)
    marks = {"labels": {"mark": "x"}, "annotations": {"mark": "x"}}
    metadata = client.patch(f"{path}/a/status", {"metadata": marks})["metadata"]
    assert {name for name in marks if "mark" in metadata.get(name, {})} == changed
    status, refused = client.call(
        "PATCH", f"{PODS}/a/status", {"metadata": {"labels": {"a b": ""}}}, content_type="application/merge-patch+json"
    )
    assert status == (422 if path == PODS else 404), refused


def test_generation_counts_changes_of_the_spec(client: Client) -> None:
    """Labels do not count, replicas do."""
    path = "/apis/apps/v1/namespaces/default/replicasets"
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    body = {"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    client.create(path, body)
    relabelled = client.patch(f"{path}/r", {"metadata": {"labels": {"a": "b"}}})
    assert relabelled["metadata"]["generation"] == 1
    assert client.patch(f"{path}/r", {"spec": {"replicas": 5}})["metadata"]["generation"] == 2


def test_finalizers_keep_an_object_until_they_are_removed(client: Client) -> None:
    """Deletion only marks an object with finalizers; removing the last one removes it."""
    path = "/api/v1/namespaces/default/configmaps"
    client.create(path, {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}})
    marked = client.delete(f"{path}/c")
    assert marked["metadata"]["deletionTimestamp"]
    client.patch(f"{path}/c", {"metadata": {"finalizers": None}})
    assert client.call("GET", f"{path}/c")[0] == 404


def test_a_bound_pod_is_deleted_gracefully(client: Client) -> None:
    """It is marked until its kubelet removes it; an unbound pod is removed at once."""
    client.create(PODS, pod("bound", nodeName="n"))
    client.create(PODS, pod("unbound"))
    marked = client.delete(f"{PODS}/bound")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    client.delete(f"{PODS}/unbound")
    assert [one["metadata"]["name"] for one in client.get(PODS)["items"]] == ["bound"]
    client.delete(f"{PODS}/bound?gracePeriodSeconds=0")
    assert client.get(PODS)["items"] == []


def test_preconditions_protect_a_new_object_of_the_same_name(client: Client) -> None:
    """A deletion with another uid has no effect."""
    client.create(PODS, pod())
    status, body = client.call("DELETE", f"{PODS}/a", {"preconditions": {"uid": "another"}})
    assert (status, body["reason"]) == (409, "Conflict")


def test_a_dry_run_writes_nothing(client: Client) -> None:
    """All checks are run."""
    status, body = client.call("POST", f"{PODS}?dryRun=All", pod())
    assert (status, body["metadata"]["name"]) == (201, "a")
    assert client.call("GET", f"{PODS}/a")[0] == 404
    client.create(PODS, pod())
    client.call("DELETE", f"{PODS}/a?dryRun=All")
    assert client.call("GET", f"{PODS}/a")[0] == 200


def test_deletecollection_removes_the_selected_objects(client: Client) -> None:
    """Only objects with the label."""
    for name in ("a", "b", "c"):
        client.create(PODS, pod(name))
    client.delete(f"{PODS}?labelSelector=app in (a,c)".replace(" ", "%20"))
    assert [one["metadata"]["name"] for one in client.get(PODS)["items"]] == ["b"]


def test_events_are_served_in_two_groups(client: Client) -> None:
    """Events of events.k8s.io/v1 are converted to v1, field by field, and back."""
    written = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "one",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "Assigned",
        "type": "Normal",
    }
    created = client.create("/apis/events.k8s.io/v1/namespaces/default/events", written)
    assert (created["apiVersion"], created["note"]) == ("events.k8s.io/v1", "Assigned")
    core = client.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=a")["items"][0]
    assert core["message"] == "Assigned"
    assert core["reportingComponent"] == "default-scheduler"
    assert client.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name=a")["items"] == [created]


def test_a_body_may_be_yaml(client: Client) -> None:
    """Times in it stay strings."""
    body = b"metadata: {name: written, annotations: {at: '2026-01-01'}}\ndata: {day: 2026-01-02}\n"
    path = "/api/v1/namespaces/default/configmaps"
    status, created = client.call("POST", path, body, content_type="application/yaml")
    assert (status, created["data"]) == (201, {"day": "2026-01-02"})

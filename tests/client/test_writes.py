"""The scheduler's writes to the API server: whole objects, patches, and only while leading."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubestow.api import codec
from kubestow.api.devices import ResourceClaim, ResourceClaimConsumer
from kubestow.api.envelopes import Status, Updated
from kubestow.api.failures import ConflictError, InvalidError, LeaseLostError
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.whole_objects import WholePendingPod
from kubestow.client.connection import Response
from kubestow.client.protobuf import PROTOBUF
from kubestow.client.requests import Requests
from kubestow.client.writes import LiveApi, merged
from support.plugins.platform_plugins import ElasticQuota

POD = codec.convert(
    Pod, {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "status": {"nominatedNodeName": "n"}}
)


UPDATED = Updated(ObjectMeta(name="x", namespace="d", resourceVersion="2", finalizers=("f",)))
CLAIM_PATH = "/apis/resource.k8s.io/v1/namespaces/d/resourceclaims/x"


class Recorder:
    """Records the requests."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def send(self, method: str, path: str, body: Any, content_type: str) -> None:
        self.calls.append((method, path, body, content_type))

    async def fetch(self, _: type, method: str, path: str, body: Any, content_type: str) -> Any:
        self.calls.append((method, path, body, content_type))
        return UPDATED


def _api(requests: Recorder, *, leads: bool = True) -> LiveApi:
    unchecked: Any = requests
    return LiveApi(unchecked, lambda: leads)


def _tree(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "x", "namespace": "d", "annotations": {"a": "1"}}, **fields}


def test_changes_are_merged_into_the_received_object() -> None:
    """Unknown fields are kept; None removes; kind and version are added; managed fields are left to the server."""
    meta = {"name": "x", "labels": {"l": "1"}, "managedFields": [{"manager": "kubectl"}]}
    source = json.dumps({"metadata": meta, "spec": {"novel": [1], "old": 1}}).encode()
    result = merged(source, "Thing", "v9", {"metadata": {"annotations": {"a": "b"}}, "spec": {"old": None, "new": {}}})
    assert json.loads(result) == {
        "kind": "Thing",
        "apiVersion": "v9",
        "metadata": {"name": "x", "labels": {"l": "1"}, "annotations": {"a": "b"}},
        "spec": {"novel": [1], "new": {}},
    }


@pytest.mark.parametrize(
    ("kind", "method", "path"),
    [
        (PersistentVolume, "update_volume", "/api/v1/persistentvolumes/x"),
        (PersistentVolumeClaim, "update_claim", "/api/v1/namespaces/d/persistentvolumeclaims/x"),
        (ResourceClaim, "update_resource_claim", CLAIM_PATH),
        (ResourceClaim, "update_resource_claim_status", f"{CLAIM_PATH}/status"),
    ],
)
def test_objects_are_sent_back_whole(kind: type, method: str, path: str) -> None:
    """Each kind has its own path and keeps the fields that this scheduler does not know."""
    requests = Recorder()
    obj: Any = codec.convert(kind, _tree(kind.__name__, novel={"kept": True}))
    if kind is PersistentVolume:
        obj = replace(obj, metadata=replace(obj.metadata, namespace=""))
    asyncio.run(getattr(_api(requests), method)(obj, {"metadata": {"annotations": {"b": "2"}}}))
    ((sent_method, sent_path, sent, _),) = requests.calls
    body = json.loads(sent)
    assert (sent_method, sent_path) == ("PUT", path)
    assert body["metadata"]["annotations"] == {"a": "1", "b": "2"}
    assert body["novel"] == {"kept": True}
    assert body["kind"] == kind.__name__


@pytest.mark.parametrize(
    ("changes", "subresource", "path"),
    [
        ({"status": {"used": {"cpu": "2"}}}, "status", "/elasticquotas/x/status"),
        ({"metadata": {"annotations": {"a": "b"}}}, "", "/elasticquotas/x"),
    ],
)
def test_an_object_of_a_plugin_is_patched(changes: dict[str, Any], subresource: str, path: str) -> None:
    """The UID protects another object of the same name."""

    class Client:
        async def request(self, method: str, path: str, body: bytes, content_type: str, accept: str) -> Response:
            assert accept == "application/json"
            sent.append((method, path, json.loads(body), content_type))
            return Response(200, b'{"metadata": {"name": "x", "resourceVersion": "2"}}', b"")

    sent: list[Any] = []
    client: Any = Client()
    quota = ElasticQuota(metadata=ObjectMeta(name="x", namespace="d", uid="u"))
    patched = asyncio.run(LiveApi(Requests(client), lambda: True).patch_object(quota, changes, subresource))
    root = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/d"
    body = {**changes, "metadata": {**changes.get("metadata", {}), "uid": "u"}}
    assert sent == [("PATCH", root + path, body, "application/merge-patch+json")]
    assert (type(patched), patched.metadata.resourceVersion) == (ElasticQuota, "2")


def test_a_claim_is_written_again_with_its_new_version() -> None:
    """Only the metadata of the first response is used; the rest is as sent."""
    requests = Recorder()
    claim = codec.convert(ResourceClaim, _tree("ResourceClaim", spec={"novel": 1}, status={"rare": True}))

    async def write_twice() -> ResourceClaim:
        written = await _api(requests).update_resource_claim(claim, {"metadata": {"finalizers": ["f"]}})
        await _api(requests).update_resource_claim_status(written, {"status": {"reservedFor": []}})
        return written

    assert asyncio.run(write_twice()).metadata.finalizers == ("f",)
    first, second = (json.loads(sent) for _, _, sent, _ in requests.calls)
    assert "resourceVersion" not in first["metadata"]
    assert second["metadata"] == {**first["metadata"], "resourceVersion": "2"}
    assert (second["spec"], second["status"]) == ({"novel": 1}, {"rare": True, "reservedFor": []})


@pytest.mark.parametrize(
    ("latest", "patched"),
    [
        ({"uid": "u"}, True),
        ({"uid": "u", "nodeName": "n1"}, False),
        ({"uid": "other"}, False),
    ],
)
def test_an_error_is_written_to_a_pod_that_changed_but_not_to_a_bound_one(
    latest: dict[str, str], patched: bool
) -> None:
    """A binding without a response may have succeeded; any other update must not suppress the condition."""

    class Changed(Recorder):
        async def fetch(self, _: type, method: str, path: str, *body: Any) -> Pod:
            assert (method, path, body) == ("GET", "/api/v1/namespaces/d/pods/p", ())
            meta = {"name": "p", "namespace": "d", "uid": latest["uid"], "resourceVersion": "2"}
            return codec.convert(Pod, {"metadata": meta, "spec": {"nodeName": latest.get("nodeName", "")}})

        async def send(self, method: str, path: str, body: Any, content_type: str) -> None:
            versions.append(body["metadata"]["resourceVersion"])
            if versions == ["1"]:
                raise ConflictError("PATCH", 409, Status(reason="Conflict", message="modified"))

    versions: list[str] = []
    pod = codec.convert(Pod, {"metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "1"}})
    condition = PodCondition("PodScheduled", "False", "SchedulerError", "lost")
    asyncio.run(_api(Changed()).patch_pod_status(pod, condition=condition))
    assert versions == (["1", "2"] if patched else ["1"])


class Strict(Recorder):
    """Rejects claims in JSON; returns an empty one in protobuf."""

    message = b"k8s\x00" + b"\x0a\x02tm" + b"\x12\x05claim"

    async def fetch(self, _: type, method: str, path: str, body: Any, content_type: str) -> Any:
        if content_type != PROTOBUF:
            raise InvalidError("PUT x", 422, Status(reason="Invalid", message="field is immutable"))
        return await super().fetch(_, method, path, body, content_type)

    async def send(self, method: str, path: str, body: Any = b"", content_type: str = "", accept: str = "") -> Any:
        assert (method, path, accept) == ("GET", CLAIM_PATH, f"{PROTOBUF}, application/json")
        return Response(200, self.message, b"")


OPAQUE = {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {"a": 1}}}]}}


def test_a_claim_with_parameters_that_json_changes() -> None:
    """Finalizers and consumers are added in protobuf, to the known version."""
    requests = Strict()
    claim = codec.convert(ResourceClaim, _tree("ResourceClaim", spec=OPAQUE))
    claim = replace(claim, metadata=replace(claim.metadata, resourceVersion="7", finalizers=("old",)))
    consumer = ResourceClaimConsumer(resource="pods", name="p", uid="u" * 130)

    async def write() -> None:
        api = _api(requests)
        await api.update_resource_claim(claim, {"metadata": {"finalizers": ["old", "new"]}})
        await api.update_resource_claim_status(claim, {"status": {"reservedFor": [consumer]}})

    asyncio.run(write())
    first, second = [(body, content_type) for *_, body, content_type in requests.calls]
    start = b"k8s\x00" + b"\x0a\x02tm"
    metadata = b"\x32\x017" + b"\x72\x03new"
    assert first == (start + b"\x12\x0f" + b"claim" + b"\x0a\x08" + metadata, PROTOBUF)
    fields = b"\x1a\x04pods" + b"\x22\x01p" + b"\x2a\x82\x01" + b"u" * 130
    status = b"\x1a\x91\x01" + b"\x12\x8e\x01" + fields
    body = b"claim" + b"\x0a\x03" + b"\x32\x017" + status
    assert second == (start + b"\x12" + bytes([len(body) & 0x7F | 0x80, len(body) >> 7]) + body, PROTOBUF)


@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        ({}, {"metadata": {"finalizers": ["new"]}}, Strict.message),
        (OPAQUE, {"metadata": {"finalizers": None}}, Strict.message),
        (OPAQUE, {"metadata": {"finalizers": ["new"]}}, b'{"kind": "ResourceClaim"}'),
        (OPAQUE, {"metadata": {"finalizers": ["new"]}}, Strict.message[:-1]),
        (OPAQUE, {"metadata": {"finalizers": ["new"]}}, b"k8s\x00\x08\x01"),
    ],
)
def test_a_claim_that_is_invalid_in_protobuf_too(spec: Any, changes: Any, message: bytes) -> None:
    """The server's error is raised: without additions, without parameters, or without protobuf at the server."""
    requests = Strict()
    requests.message = message
    claim = codec.convert(ResourceClaim, _tree("ResourceClaim", spec=spec))
    with pytest.raises(InvalidError, match="field is immutable"):
        asyncio.run(_api(requests).update_resource_claim(claim, changes))


def test_a_patch_without_changes_is_not_sent() -> None:
    """The same nominated node is not written again; another one is."""
    requests = Recorder()
    api = _api(requests)
    asyncio.run(api.patch_pod_status(POD, nominated_node="n"))
    assert requests.calls == []
    asyncio.run(api.patch_pod_status(POD, nominated_node=""))
    patch = {"status": {"nominatedNodeName": None}}
    path = "/api/v1/namespaces/d/pods/p/status"
    assert requests.calls == [("PATCH", path, patch, "application/strategic-merge-patch+json")]


def test_a_pod_that_keeps_its_json_is_a_pod() -> None:
    """With extenders, all pods do."""
    requests = Recorder()
    pod = codec.convert(WholePendingPod, {"metadata": {"name": "p", "namespace": "d", "uid": "u"}})
    asyncio.run(_api(requests).delete_pod(pod))
    assert requests.calls[0][:2] == ("DELETE", "/api/v1/namespaces/d/pods/p")


def test_nothing_is_written_without_the_lease() -> None:
    """Every kind of write is rejected before it is sent."""
    requests = Recorder()
    api = _api(requests, leads=False)
    volume = codec.convert(PersistentVolume, _tree("PersistentVolume"))
    claim = codec.convert(PersistentVolumeClaim, _tree("PersistentVolumeClaim"))
    devices = codec.convert(ResourceClaim, _tree("ResourceClaim"))
    condition = PodCondition(type="PodScheduled", status="False")
    for write in (
        api.bind(POD, "n"),
        api.patch_pod_status(POD, condition=condition),
        api.delete_pod(POD),
        api.update_volume(volume, {}),
        api.update_claim(claim, {}),
        api.update_resource_claim(devices, {}),
        api.update_resource_claim_status(devices, {}),
    ):
        with pytest.raises(LeaseLostError):
            asyncio.run(write)
    assert requests.calls == []


def test_raw_sources_are_accepted() -> None:
    """The sources that the codec keeps are accepted."""
    assert json.loads(merged(msgspec.Raw(b'{"a": 1}'), "K", "v1", {"a": 2}))["a"] == 2

"""What is sent for each write, compared with what kube-scheduler sends.

A few records are below; if the environment variable KUBESTOW_WIRE names a file of recorded requests (one JSON object
per line: method, path, headers, body), all of it is compared.
"""

import json
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from kubestow.api import codec
from kubestow.api.devices import ResourceClaim
from kubestow.api.meta import ObjectMeta, ObjectReference
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.timestamps import parse_time
from kubestow.client.events import EventRecorder
from kubestow.client.leases import LeaseLock, Record
from kubestow.client.requests import Requests
from kubestow.client.reviews import ReviewedUser
from kubestow.client.writes import LiveApi
from support.client.doubles import FixedClock, middle
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run

T = TypeVar("T")

JSON = {"Accept": "application/json", "Content-Type": "application/json"}
PATCH = {"Accept": "application/json", "Content-Type": "application/strategic-merge-patch+json"}
COLLECTIONS = ("binding", "status", "events", "leases", "resourceclaims")
LEASE_SPEC = {
    "holderIdentity": "host-1",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-11-15T06:12:26.453203Z",
    "renewTime": "2026-11-15T06:12:26.453203Z",
    "leaseTransitions": 0,
}
RECORDS: list[dict[str, Any]] = [
    {
        "method": "POST",
        "path": "/api/v1/namespaces/default/pods/ok/binding",
        "headers": JSON,
        "body": {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": "ok", "namespace": "default", "uid": "u1"},
            "target": {"kind": "Node", "name": "n1"},
        },
    },
    {
        "method": "PATCH",
        "path": "/api/v1/namespaces/default/pods/p/status",
        "headers": PATCH,
        "body": {"status": {"nominatedNodeName": "n2"}},
    },
    {
        "method": "DELETE",
        "path": "/api/v1/namespaces/default/pods/ok",
        "headers": JSON,
        "body": {"kind": "DeleteOptions", "apiVersion": "v1"},
    },
    {
        "method": "POST",
        "path": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?timeout=5s",
        "headers": JSON,
        "body": {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
            "spec": LEASE_SPEC,
        },
    },
    {
        "method": "PUT",
        "path": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler?timeout=5s",
        "headers": JSON,
        "body": {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": "3"},
            "spec": LEASE_SPEC,
        },
    },
    {
        "method": "POST",
        "path": "/apis/events.k8s.io/v1/namespaces/default/events",
        "headers": JSON,
        "body": {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": "ok.18e823326d11daf9", "namespace": "default"},
            "eventTime": "2026-11-15T06:12:30.992312Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-vm",
            "action": "Binding",
            "reason": "Scheduled",
            "regarding": {
                "kind": "Pod",
                "namespace": "default",
                "name": "ok",
                "uid": "u1",
                "apiVersion": "v1",
                "resourceVersion": "12382",
            },
            "note": "Successfully assigned default/ok to n1",
            "type": "Normal",
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        },
    },
    {
        "method": "POST",
        "path": "/api/v1/namespaces/kube-system/events",
        "headers": JSON,
        "body": {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": "kube-scheduler.18e8233164b86a54", "namespace": "kube-system"},
            "involvedObject": {
                "kind": "Lease",
                "namespace": "kube-system",
                "name": "kube-scheduler",
                "uid": "u2",
                "apiVersion": "coordination.k8s.io/v1",
                "resourceVersion": "12374",
            },
            "reason": "LeaderElection",
            "message": "host-1 became leader",
            "source": {"component": "default-scheduler"},
            "firstTimestamp": "2026-11-15T06:12:26Z",
            "lastTimestamp": "2026-11-15T06:12:26Z",
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": "default-scheduler",
            "reportingInstance": "",
        },
    },
    {
        "method": "PUT",
        "path": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/rc1/status",
        "headers": JSON,
        "body": {
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "rc1", "unknown": [1]},
            "status": {},
        },
    },
    {
        "method": "POST",
        "path": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
        "headers": JSON,
        "body": {"kind": "ResourceClaim", "metadata": {"generateName": "p-extended-"}, "spec": {}},
    },
    {
        "method": "PUT",
        "path": "/api/v1/persistentvolumes/pv1",
        "headers": JSON,
        "body": {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": "pv1", "unknown": [1]},
            "spec": {},
        },
    },
]


def wire_records() -> list[Any]:
    named = os.environ.get("KUBESTOW_WIRE")
    lines = [json.loads(line) for line in Path(named).read_text().splitlines()] if named else []
    return [pytest.param(r, id=f"{r['method']} {r['path'].split('?')[0]}") for r in RECORDS + lines]


async def repeat(record: dict[str, Any], requests: Requests, recorder: EventRecorder) -> None:
    """Make the call that must send this record."""
    api = LiveApi(requests, lambda: True)
    path, body = record["path"].split("?")[0], record["body"]
    parts = path.split("/")
    namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
    name = parts[-1]
    match record["method"], parts[-1] if parts[-1] in COLLECTIONS else parts[-2]:
        case "POST", "binding":
            await api.bind(pod_of(namespace, parts[-2], body["metadata"]["uid"]), body["target"]["name"])
        case "PATCH", "status":
            await api._patch_status(pod_of(namespace, parts[-2]), body)
        case "DELETE", "pods":
            await api.delete_pod(pod_of(namespace, name))
        case "POST", "leases":
            await lock_of(record, requests).create(record_of(body["spec"]))
        case "PUT", "leases":
            lock = lock_of(record, requests)
            lock._lease = body
            await lock.update(record_of(body["spec"]))
        case "PUT", "persistentvolumeclaims":
            await api.update_claim(object_of(PersistentVolumeClaim, namespace, body), {})
        case "PUT", "persistentvolumes":
            await api.update_volume(object_of(PersistentVolume, "", body), {})
        case "POST", "resourceclaims":
            await api.create_resource_claim(namespace, body)
        case "PUT", "resourceclaims":
            await api.update_resource_claim(object_of(ResourceClaim, namespace, body), {})
        case "PUT", "status":
            await api.update_resource_claim_status(object_of(ResourceClaim, namespace, body), {})
        case "POST", "events" if path.startswith("/apis/"):
            regarding = ObjectReference(**body["regarding"])
            recorder.record(
                body["reportingController"], regarding, body["type"], body["reason"], body["action"], body["note"]
            )
            await recorder._deliver(recorder._pending.popleft()[0])
        case "POST", "events":
            lock = LeaseLock(requests, namespace, body["involvedObject"]["name"], body["message"].split(" ")[0])
            lock._lease = {"metadata": body["involvedObject"]}
            recorder.announce(body["source"]["component"], lock, body["message"].split(" ", 1)[1])
            await recorder._deliver(recorder._pending.popleft()[0])
        case unknown:
            raise AssertionError(f"no method sends {unknown}")


def pod_of(namespace: str, name: str, uid: str = "") -> Pod:
    return Pod(ObjectMeta(namespace=namespace, name=name, uid=uid))


def object_of(kind: type[T], namespace: str, body: dict[str, Any]) -> T:
    """Return an object with the JSON of a recorded request, and the namespace of its path."""
    obj: Any = codec.convert(kind, body)
    return replace(obj, metadata=replace(obj.metadata, namespace=namespace))  # type: ignore[no-any-return]


def lock_of(record: dict[str, Any], requests: Requests) -> LeaseLock:
    meta = record["body"]["metadata"]
    return LeaseLock(requests, meta["namespace"], meta["name"], "host-1")


def record_of(spec: dict[str, Any]) -> Record:
    return Record(
        spec["holderIdentity"],
        spec["leaseDurationSeconds"],
        spec["acquireTime"],
        spec["renewTime"],
        spec["leaseTransitions"],
    )


def meaningful(body: dict[str, Any]) -> dict[str, Any]:
    """Return a record without empty fields, and with the time in an event's name replaced."""
    kept = {k: v for k, v in body.items() if not k.startswith("deprecated") and not (k == "eventTime" and v is None)}
    if kept.get("kind") == "Event":
        name = re.sub(r"\.[0-9a-f]{16}$", ".MOMENT", kept["metadata"]["name"])
        kept["metadata"] = kept["metadata"] | {"name": name}
    return kept


def moment_of(body: dict[str, Any]) -> float:
    text = body.get("eventTime") or body.get("firstTimestamp")
    return parse_time(text) if text else 0.0


@pytest.mark.parametrize("record", wire_records())
def test_sent_as_kube_scheduler_sends_it(record: dict[str, Any]) -> None:
    """Method, path, query, content type and the relevant fields of the body are equal."""

    async def accept(request: Request, answer: Answer) -> None:
        answer.reply(200, request.json if request.body else {})

    async def main() -> None:
        async with serving(accept) as server:
            with opened(server) as channel:
                timeout = 5.0 if "timeout=5s" in record["path"] else None
                requests = Requests(client_of(channel), timeout)
                clock = FixedClock(moment_of(record["body"]))
                recorder = EventRecorder(requests, hostname="vm", clock=clock, random=middle)
                await repeat(record, requests, recorder)
            [sent] = server.requests
            assert (sent.method, sent.target) == (record["method"], record["path"])
            assert sent.headers["content-type"] == record["headers"]["Content-Type"]
            assert sent.headers["accept"] == record["headers"]["Accept"]
            assert meaningful(sent.json) == meaningful(record["body"])

    run(main())


def test_claim_that_is_read_again() -> None:
    """After a conflict a claim is read again, with all the JSON that its next update must send back."""
    claim = {"metadata": {"name": "rc1", "resourceVersion": "8", "unknown": 1}, "status": {}}

    async def give(request: Request, answer: Answer) -> None:
        assert (request.method, request.body) == ("GET", b"")
        assert request.target == "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/rc1"
        answer.reply(200, claim)

    async def main() -> None:
        async with serving(give) as server:
            with opened(server) as channel:
                api = LiveApi(Requests(client_of(channel)), lambda: False)
                old = ResourceClaim(metadata=ObjectMeta(namespace="default", name="rc1"))
                found = await api.get_resource_claim(old)
                assert found.metadata.resourceVersion == "8"
                assert json.loads(bytes(found.source)) == claim

    run(main())


def test_token_and_access_reviews() -> None:
    """Tokens and rights of clients are sent in the form of the API server."""

    async def judge(request: Request, answer: Answer) -> None:
        if request.path == "/apis/authentication.k8s.io/v1/tokenreviews":
            assert request.json["spec"] == {"token": "t"}
            answer.reply(201, {"status": {"authenticated": True, "user": {"username": "eve", "groups": ["g"]}}})
        else:
            assert request.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            assert request.json["spec"] == {
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                "user": "eve",
                "groups": ["g"],
            }
            answer.reply(201, {"status": {"allowed": False, "reason": "no rule"}})

    async def main() -> None:
        async with serving(judge) as server:
            with opened(server) as channel:
                requests = Requests(client_of(channel))
                who = await requests.review_token("t")
                assert (who.authenticated, who.user) == (True, ReviewedUser(username="eve", groups=("g",)))
                access = await requests.review_access(who.user, "get", "/metrics")
                assert (access.allowed, access.reason) == (False, "no rule")

    run(main())

"""Every write of the scheduler, and the reads that belong to them: one thin method each.

A method defines the path, the content type and the form of the body. Objects that are sent back whole (volumes, claims,
leases) are passed as JSON, so that fields unknown here are preserved.
"""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from kubestow.api import codec
from kubestow.api.custom_kinds import CustomResource
from kubestow.api.devices import ResourceClaim
from kubestow.api.envelopes import Updated
from kubestow.api.failures import BadAnswerError
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.client.api import JSON, MERGE, STRATEGIC_MERGE, ApiClient
from kubestow.client.connection import Response
from kubestow.client.protobuf import PROTOBUF
from kubestow.client.reviews import (
    AccessReviewStatus,
    ReviewedUser,
    SubjectAccessReview,
    TokenReview,
    TokenReviewStatus,
)
from kubestow.config.durations import Duration

Body = bytes | Mapping[str, Any] | msgspec.Struct
PendingResponse = Coroutine[Any, Any, Response]
"""A request to be awaited; for most, the response only confirms its success."""

T = TypeVar("T")
Pending = Coroutine[Any, Any, T]
"""A request to be awaited, with its decoded response."""

_encoder = msgspec.json.Encoder()


class Requests:
    """The requests, sent by one client.

    `server_timeout` is the time limit in seconds that each request sets at the server, as other clients with a time
    limit do.
    """

    def __init__(self, client: ApiClient, server_timeout: float | None = None) -> None:
        self._client = client
        self._query = "" if server_timeout is None else f"?timeout={Duration(round(server_timeout * 1e9))}"

    # Pods.

    def bind_pod(self, namespace: str, name: str, uid: str, node: str) -> PendingResponse:
        return self._send(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods/{name}/binding",
            {
                "kind": "Binding",
                "apiVersion": "v1",
                "metadata": {"name": name, "namespace": namespace, "uid": uid},
                "target": {"kind": "Node", "name": node},
            },
        )

    def get_pod(self, namespace: str, name: str) -> Pending[Pod]:
        return self._object(Pod, "GET", f"/api/v1/namespaces/{namespace}/pods/{name}")

    def patch_pod_status(self, namespace: str, name: str, patch: Body) -> PendingResponse:
        """Send a strategic merge patch of the status subresource."""
        return self._send("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", patch, STRATEGIC_MERGE)

    def delete_pod(self, namespace: str, name: str) -> PendingResponse:
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        return self._send("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", options)

    def patch_pod_group_status(self, namespace: str, name: str, patch: Body) -> PendingResponse:
        """Send a strategic merge patch of the status subresource."""
        path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups/{name}/status"
        return self._send("PATCH", path, patch, STRATEGIC_MERGE)

    # Objects of the kinds that plugins declare.

    def patch_object(
        self, resource: CustomResource, kind: type[T], namespace: str, name: str, patch: Body, subresource: str
    ) -> Pending[T]:
        """Send a JSON merge patch of an object or of a subresource."""
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        folder = f"{root}/namespaces/{namespace}" if resource.is_namespaced else root
        path = f"{folder}/{resource.plural}/{name}{f'/{subresource}' if subresource else ''}"
        return self._object(kind, "PATCH", path, patch, MERGE)

    # Volumes and claims.

    def put_volume(self, name: str, volume: Body) -> Pending[PersistentVolume]:
        return self._object(PersistentVolume, "PUT", f"/api/v1/persistentvolumes/{name}", volume)

    def put_volume_claim(self, namespace: str, name: str, claim: Body) -> Pending[PersistentVolumeClaim]:
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
        return self._object(PersistentVolumeClaim, "PUT", path, claim)

    def get_resource_claim(self, namespace: str, name: str) -> Pending[ResourceClaim]:
        return self._object(ResourceClaim, "GET", _resource_claims(namespace, f"/{name}"))

    def create_resource_claim(self, namespace: str, claim: Body) -> Pending[ResourceClaim]:
        return self._object(ResourceClaim, "POST", _resource_claims(namespace), claim)

    async def get_resource_claim_message(self, namespace: str, name: str) -> bytes:
        """Return the claim in protobuf, or in JSON if the server does not support protobuf."""
        path = _resource_claims(namespace, f"/{name}") + self._query
        return (await self._client.request("GET", path, accept=f"{PROTOBUF}, {JSON}")).body

    def put_resource_claim(self, namespace: str, name: str, claim: Body, content_type: str = JSON) -> Pending[Updated]:
        """Update the metadata: the spec is immutable, and the status is a subresource."""
        return self._object(Updated, "PUT", _resource_claims(namespace, f"/{name}"), claim, content_type)

    def put_resource_claim_status(
        self, namespace: str, name: str, claim: Body, content_type: str = JSON
    ) -> Pending[ResourceClaim]:
        return self._object(ResourceClaim, "PUT", _resource_claims(namespace, f"/{name}/status"), claim, content_type)

    def patch_resource_claim_status(self, namespace: str, name: str, patch: Body) -> Pending[ResourceClaim]:
        """Send a strategic merge patch of the status subresource."""
        path = _resource_claims(namespace, f"/{name}/status")
        return self._object(ResourceClaim, "PATCH", path, patch, STRATEGIC_MERGE)

    def delete_resource_claim(self, namespace: str, name: str) -> PendingResponse:
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        return self._send("DELETE", _resource_claims(namespace, f"/{name}"), options)

    # Events.

    def create_event(self, namespace: str, event: Body) -> PendingResponse:
        return self._send("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)

    def patch_event(self, namespace: str, name: str, patch: Body) -> PendingResponse:
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}"
        return self._send("PATCH", path, patch, STRATEGIC_MERGE)

    def create_core_event(self, namespace: str, event: Body) -> PendingResponse:
        return self._send("POST", f"/api/v1/namespaces/{namespace}/events", event)

    # Leases, as JSON trees: fields of other clients are sent back.

    async def get_lease(self, namespace: str, name: str) -> dict[str, Any]:
        return await self._object(dict[str, Any], "GET", _leases(namespace, f"/{name}"))

    async def create_lease(self, namespace: str, lease: Body) -> dict[str, Any]:
        return await self._object(dict[str, Any], "POST", _leases(namespace), lease)

    async def put_lease(self, namespace: str, name: str, lease: Body) -> dict[str, Any]:
        return await self._object(dict[str, Any], "PUT", _leases(namespace, f"/{name}"), lease)

    async def get_lease_candidate(self, namespace: str, name: str) -> dict[str, Any]:
        return await self._object(dict[str, Any], "GET", _lease_candidates(namespace, f"/{name}"))

    def create_lease_candidate(self, namespace: str, candidate: Body) -> PendingResponse:
        return self._send("POST", _lease_candidates(namespace), candidate)

    def put_lease_candidate(self, namespace: str, name: str, candidate: Body) -> PendingResponse:
        return self._send("PUT", _lease_candidates(namespace, f"/{name}"), candidate)

    # Authentication and authorization of the clients of the scheduler's own server.

    async def review_token(self, token: str) -> TokenReviewStatus:
        spec = {"token": token}
        body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec}
        review = await self._object(TokenReview, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
        return review.status

    async def review_access(self, user: ReviewedUser, verb: str, non_resource_path: str) -> AccessReviewStatus:
        spec: dict[str, Any] = {
            "nonResourceAttributes": {"path": non_resource_path, "verb": verb},
            "user": user.username,
        }
        optional = {"groups": user.groups, "extra": user.extra, "uid": user.uid}
        spec |= {key: value for key, value in optional.items() if value}
        body = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return (await self._object(SubjectAccessReview, "POST", path, body)).status

    def _send(self, method: str, path: str, body: Body = b"", content_type: str = JSON) -> PendingResponse:
        data = body if isinstance(body, bytes) else _encoder.encode(body)
        return self._client.request(method, path + self._query, data, content_type)

    async def _object(self, kind: type[T], method: str, path: str, body: Body = b"", content_type: str = JSON) -> T:
        answer = await self._send(method, path, body, content_type)
        try:
            return codec.decode(kind, answer.body)
        except codec.DecodeError as error:
            raise BadAnswerError(f"{path}: the answer cannot be decoded: {error}") from None


def _resource_claims(namespace: str, rest: str = "") -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims{rest}"


def _leases(namespace: str, rest: str = "") -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases{rest}"


def _lease_candidates(namespace: str, rest: str = "") -> str:
    return f"/apis/coordination.k8s.io/v1beta1/namespaces/{namespace}/leasecandidates{rest}"

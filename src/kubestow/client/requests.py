"""Requests with a body in JSON and a decoded response, and the paths of resources."""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from kubestow.api import codec
from kubestow.api.failures import BadAnswerError
from kubestow.client.api import JSON, ApiClient
from kubestow.client.connection import Response
from kubestow.client.reviews import (
    AccessReviewStatus,
    ReviewedUser,
    SubjectAccessReview,
    TokenReview,
    TokenReviewStatus,
)
from kubestow.config.durations import Duration

Body = bytes | Mapping[str, Any] | msgspec.Struct
T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def path_of(version: str, plural: str, namespace: str = "", *more: str) -> str:
    """Return the path of a resource; `version` is v1 or GROUP/VERSION, `more` the name of an object and a subresource.

    Without a namespace it is that of a cluster-scoped resource.
    """
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return "/".join((root, *(("namespaces", namespace) if namespace else ()), plural, *more))


class Requests:
    """The requests, sent by one client.

    `server_timeout` is the time limit in seconds that each request sets at the server, as other clients with a time
    limit do.
    """

    def __init__(self, client: ApiClient, server_timeout: float | None = None) -> None:
        self._client = client
        self._query = "" if server_timeout is None else f"?timeout={Duration(round(server_timeout * 1e9))}"

    def send(
        self, method: str, path: str, body: Body = b"", content_type: str = JSON, *, accept: str = JSON
    ) -> Coroutine[Any, Any, Response]:
        """Send a request."""
        data = body if isinstance(body, bytes) else _encoder.encode(body)
        return self._client.request(method, path + self._query, data, content_type, accept=accept)

    async def fetch(self, kind: type[T], method: str, path: str, body: Body = b"", content_type: str = JSON) -> T:
        """Send a request and return the decoded response. Raises BadAnswerError if it is not of this kind."""
        answer = await self.send(method, path, body, content_type)
        try:
            return codec.decode(kind, answer.body)
        except codec.DecodeError as error:
            raise BadAnswerError(f"{path}: the answer cannot be decoded: {error}") from None

    # Authentication and authorization of the clients of the scheduler's own server.

    async def review_token(self, token: str) -> TokenReviewStatus:
        """Return the user of a token."""
        spec = {"token": token}
        body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec}
        return (await self.fetch(TokenReview, "POST", path_of("authentication.k8s.io/v1", "tokenreviews"), body)).status

    async def review_access(self, user: ReviewedUser, verb: str, non_resource_path: str) -> AccessReviewStatus:
        """Return whether a user may read a path."""
        spec: dict[str, Any] = {
            "nonResourceAttributes": {"path": non_resource_path, "verb": verb},
            "user": user.username,
        }
        optional = {"groups": user.groups, "extra": user.extra, "uid": user.uid}
        spec |= {key: value for key, value in optional.items() if value}
        body = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec}
        path = path_of("authorization.k8s.io/v1", "subjectaccessreviews")
        return (await self.fetch(SubjectAccessReview, "POST", path, body)).status

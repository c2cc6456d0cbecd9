"""Decodes error responses into the exceptions of `kubestow.api.failures`; adds the client's own CredentialsError."""

import msgspec

from kubestow.api.codec import NOT_JSON
from kubestow.api.envelopes import Status
from kubestow.api.failures import ApiError, CallError, failure_of

_SHOWN_BODY = 300
_status_decoder = msgspec.json.Decoder(Status)


class CredentialsError(CallError):
    """A kubeconfig, token, certificate or plugin is invalid; the message names the source and the field."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        super().__init__(f"{source}: {field}: {problem}" if field else f"{source}: {problem}")
        self.source = source
        self.field = field


def api_error(request: str, code: int, body: bytes | msgspec.Raw, retry_after: float | None = None) -> ApiError:
    """Return the exception for an error response; `request` is its method and path, for the message."""
    try:
        status = _status_decoder.decode(body)
    except NOT_JSON:
        # A proxy or load balancer in between responds in its own format.
        status = Status(message=bytes(body[:_SHOWN_BODY]).decode("utf-8", "replace").strip(), code=code)
    return failure_of(request, code, status, retry_after)

"""Error answers decoded into the failures of `model.failures`, and the one failure that is the client's own."""

import msgspec

from kubestow.api.codec import NOT_JSON
from kubestow.api.envelopes import Status
from kubestow.api.failures import ApiError, CallError, failure_of

_SHOWN_BODY = 300
_status_decoder = msgspec.json.Decoder(Status)


class CredentialsError(CallError):
    """A kubeconfig, token, certificate or plugin that cannot be used; names the source and the field."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        super().__init__(f"{source}: {field}: {problem}" if field else f"{source}: {problem}")
        self.source = source
        self.field = field


def api_error(request: str, code: int, body: bytes | msgspec.Raw, retry_after: float | None = None) -> ApiError:
    """The exception for an error answer; `request` is its method and path, for the message."""
    try:
        status = _status_decoder.decode(body)
    except NOT_JSON:
        # A proxy or load balancer in between answers in its own words.
        status = Status(message=bytes(body[:_SHOWN_BODY]).decode("utf-8", "replace").strip(), code=code)
    return failure_of(request, code, status, retry_after)

"""Exceptions for failed calls to the API server: the one place that classifies failures.

`TransportError`: no complete response was received. `ApiError`: the response is an error; its type follows from the
reason in the response, or else from the HTTP code. Callers test the type, never the message or the code.
"""

from kubestow.api.envelopes import Status


class CallError(Exception):
    """A call to the API server failed."""

    retry_after: float | None = None
    """Seconds after which the server wants the request to be repeated; None if it named no time."""


class LeaseLostError(CallError):
    """This instance is no longer the leader and must not send requests."""


class TransportError(CallError):
    """The server sent no complete response; whether it acted on the request is unknown unless stated."""


class ConnectError(TransportError):
    """The server is unreachable: the request was never sent."""


class UntrustedError(ConnectError):
    """The certificate of the server is not trusted."""


class ConnectionLostError(TransportError):
    """The connection ended before the response was complete."""


class TimedOutError(TransportError):
    """The server sent no response within the timeout."""


class BadAnswerError(TransportError):
    """The response is not valid HTTP, or not what the API specifies."""


class ApiError(CallError):
    """The server responded with an error.

    The message is that of the server, which ends up in conditions and events of pods, as with kube-scheduler. If it is
    empty or does not come from an API server, the request and the code are put in front of it.
    """

    def __init__(self, request: str, code: int, status: Status, retry_after: float | None = None) -> None:
        if status.reason and status.message:
            message = status.message
        else:
            detail = status.reason or status.message or "without a message"
            # Go's servers start with the code: 404 page not found.
            message = f"{request}: {detail if detail.startswith(f'{code} ') else f'{code} {detail}'}"
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class BadRequestError(ApiError):
    """400: the server does not understand the request."""


class UnauthorizedError(ApiError):
    """401: the server cannot authenticate the client."""


class ForbiddenError(ApiError):
    """403: the client is not allowed to do this."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource."""


class ConflictError(ApiError):
    """409: the object changed since it was read, or is not in the required state."""


class AlreadyExistsError(ConflictError):
    """409 on create: the object exists."""


class GoneError(ApiError):
    """410: the resource version or continue token is too old."""


class InvalidError(ApiError):
    """422: the object violates a validation rule."""


class TooManyRequestsError(ApiError):
    """429: the client exceeds a rate limit of the server."""


class ServerFailedError(ApiError):
    """5xx: the server failed; the request is not at fault."""


class ServerTimedOutError(ServerFailedError):
    """504: the server timed out."""


class VersionTooLargeError(ServerTimedOutError):
    """504: the server has not reached the requested resource version, and may never, e.g. after a restore."""


RETRIABLE = (TransportError, ServerFailedError, TooManyRequestsError)
"""Failures after which the same call may succeed later; after any other, it will not."""

REASONS: dict[str, tuple[int, type[ApiError]]] = {
    "BadRequest": (400, BadRequestError),
    "Unauthorized": (401, UnauthorizedError),
    "Forbidden": (403, ForbiddenError),
    "NotFound": (404, NotFoundError),
    "Conflict": (409, ConflictError),
    "AlreadyExists": (409, AlreadyExistsError),
    "Gone": (410, GoneError),
    "Expired": (410, GoneError),
    "Invalid": (422, InvalidError),
    "TooManyRequests": (429, TooManyRequestsError),
    "InternalError": (500, ServerFailedError),
    "ServerTimeout": (500, ServerFailedError),
    "ServiceUnavailable": (503, ServerFailedError),
    "Timeout": (504, ServerTimedOutError),
}
"""The HTTP code and the exception type of each reason that API servers give."""

_BY_CODE = dict(reversed(REASONS.values()))
_TOO_LARGE = "ResourceVersionTooLarge"
_TOO_LARGE_MESSAGE = "Too large resource version"


def failure_of(request: str, code: int, status: Status, retry_after: float | None = None) -> ApiError:
    """Return the exception for an error response; `request` is the method and path, for the message."""
    details = status.details
    if retry_after is None and details is not None and details.retryAfterSeconds:
        retry_after = float(details.retryAfterSeconds)
    code = code or status.code
    if status.reason in REASONS:
        _, kind = REASONS[status.reason]
    else:
        kind = _BY_CODE.get(code) or (ServerFailedError if code >= 500 else ApiError)
    if kind is ServerTimedOutError and _is_too_large(status):
        kind = VersionTooLargeError
    return kind(request, code, status, retry_after)


def _is_too_large(status: Status) -> bool:
    # Servers before v1.20 give no cause, only a message.
    causes = () if status.details is None else status.details.causes
    return any(cause.reason == _TOO_LARGE for cause in causes) or _TOO_LARGE_MESSAGE in status.message

"""What can go wrong between us and the API server, as exceptions to catch by kind.

`TransportError`: no answer (could not connect, lost the connection, took too long). `ApiError`: an answer that says
no; it carries the server's Status, and its class follows the reason or else the HTTP code.
"""

import msgspec

from kubestow.model.envelopes import Status

_SHOWN_BODY = 300


class ClientError(Exception):
    """Any failure of the API client."""


class CredentialsError(ClientError):
    """A kubeconfig, token, certificate or plugin that cannot be used; names the source and the field."""

    def __init__(self, source: str, field: str, problem: str) -> None:
        super().__init__(f"{source}: {field}: {problem}" if field else f"{source}: {problem}")
        self.source = source
        self.field = field


class TransportError(ClientError):
    """The server gave no complete answer; whether it acted on the request is unknown unless stated."""


class ConnectError(TransportError):
    """No connection could be made: the request was never sent."""


class ConnectionLostError(TransportError):
    """The connection ended before the answer was complete."""


class TimedOutError(TransportError):
    """No answer within the time allowed."""


class BadAnswerError(TransportError):
    """What came back is not HTTP, or not what the API promises."""


class ApiError(ClientError):
    """The server answered with an error.

    Its own words tell it best, and end up in conditions and events of pods, where kube-scheduler puts them too. Words
    that are not the API server's, or none at all, need to be told what they are about.
    """

    def __init__(self, request: str, code: int, status: Status, retry_after: float | None = None) -> None:
        if status.reason and status.message:
            words = status.message
        else:
            words = f"{request}: {code} {status.reason or status.message or 'without a message'}"
        super().__init__(words)
        self.code = code
        self.status = status
        self.retry_after = retry_after

    @property
    def reason(self) -> str:
        return self.status.reason

    def has_cause(self, reason: str) -> bool:
        details = self.status.details
        return details is not None and any(cause.reason == reason for cause in details.causes)


class BadRequestError(ApiError):
    """400: the server does not understand the request."""


class UnauthorizedError(ApiError):
    """401: the server does not know who we are."""


class ForbiddenError(ApiError):
    """403: the server knows us and refuses."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource."""


class ConflictError(ApiError):
    """409: the object changed since it was read."""


class AlreadyExistsError(ConflictError):
    """409 on create."""


class GoneError(ApiError):
    """410: the resource version or continue token is too old."""


class InvalidError(ApiError):
    """422: the object breaks a validation rule."""


class TooManyRequestsError(ApiError):
    """429: the server asks to slow down."""


class ServerFailedError(ApiError):
    """5xx: the server could not do it, through no fault of the request."""


class ServerTimedOutError(ServerFailedError):
    """504: the server gave up waiting."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "Conflict": ConflictError,
    "AlreadyExists": AlreadyExistsError,
    "Gone": GoneError,
    "Expired": GoneError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "Timeout": ServerTimedOutError,
    "ServerTimeout": ServerFailedError,
    "InternalError": ServerFailedError,
    "ServiceUnavailable": ServerFailedError,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
    504: ServerTimedOutError,
}
_status_decoder = msgspec.json.Decoder(Status)


def api_error(request: str, code: int, body: bytes | msgspec.Raw, retry_after: float | None = None) -> ApiError:
    """The exception for an error answer; `request` is its method and path, for the message."""
    try:
        status = _status_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A proxy or load balancer in between answers in its own words.
        status = Status(message=bytes(body[:_SHOWN_BODY]).decode("utf-8", "replace").strip(), code=code)
    if retry_after is None and status.details is not None and status.details.retryAfterSeconds:
        retry_after = float(status.details.retryAfterSeconds)
    code = code or status.code
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(code) or (ServerFailedError if code >= 500 else ApiError)
    return kind(request, code, status, retry_after)

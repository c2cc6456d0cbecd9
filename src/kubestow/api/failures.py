"""Why a call to the API server failed, as exceptions to catch by type: the one place where failures are told apart.

`TransportError`: no complete answer came. `ApiError`: the answer says no; its type follows the reason that the server
gives, or else the HTTP code. Whoever decides what to do next asks for the type, never for words or numbers.
"""

from kubestow.api.envelopes import Status


class CallError(Exception):
    """Any reason why a call to the API server did not do what it was made for."""

    retry_after: float | None = None
    """Seconds after which the server wants to be asked again, if it said so."""


class LeaseLostError(CallError):
    """This instance led and must not act any more."""


class TransportError(CallError):
    """The server gave no complete answer; whether it acted on the request is unknown unless stated."""


class ConnectError(TransportError):
    """The server is unreachable: the request was never sent."""


class UntrustedError(ConnectError):
    """The server's certificate is not to be trusted."""


class ConnectionLostError(TransportError):
    """The connection ended before the answer was complete."""


class TimedOutError(TransportError):
    """No answer within the time allowed."""


class BadAnswerError(TransportError):
    """What came back is not HTTP, or not what the API promises."""


class ApiError(CallError):
    """The server answered with an error.

    Its own words tell it best, and end up in conditions and events of pods, where kube-scheduler puts them too. Words
    that are not the API server's, or none at all, need to be told what they are about.
    """

    def __init__(self, request: str, code: int, status: Status, retry_after: float | None = None) -> None:
        if status.reason and status.message:
            words = status.message
        else:
            told = status.reason or status.message or "without a message"
            # Go's servers begin with the code themselves: 404 page not found.
            words = f"{request}: {told if told.startswith(f'{code} ') else f'{code} {told}'}"
        super().__init__(words)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class BadRequestError(ApiError):
    """400: the server does not understand the request."""


class UnauthorizedError(ApiError):
    """401: the server does not know who we are."""


class ForbiddenError(ApiError):
    """403: the server knows us and refuses."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource."""


class ConflictError(ApiError):
    """409: the object changed since it was read, or is not in the state that the request needs."""


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


class VersionTooLargeError(ServerTimedOutError):
    """504: the server has not reached the resource version asked for, and may never, e.g. after a restore."""


RETRIABLE = (TransportError, ServerFailedError, TooManyRequestsError)
"""The same call may succeed later; with any other failure it will not."""

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
"""The reasons that API servers give: the code each comes with, and its type."""

_BY_CODE = dict(reversed(REASONS.values()))
_TOO_LARGE = "ResourceVersionTooLarge"
_TOO_LARGE_IN_WORDS = "Too large resource version"


def failure_of(request: str, code: int, status: Status, retry_after: float | None = None) -> ApiError:
    """The exception for an answer that says no; `request` is its method and path, for the message."""
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
    # Servers before v1.20 say so in words only.
    causes = () if status.details is None else status.details.causes
    return any(cause.reason == _TOO_LARGE for cause in causes) or _TOO_LARGE_IN_WORDS in status.message

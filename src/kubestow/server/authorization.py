"""Authorization of requests: some paths are open to all, `system:masters` may read all, else the API server decides."""

from kubestow.api.failures import CallError
from kubestow.client.requests import Requests
from kubestow.client.reviews import AccessReviewStatus, ReviewedUser
from kubestow.server.cache import ResponseCache
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

MASTERS = "system:masters"
_VERBS = {"GET": "get", "HEAD": "get", "PUT": "put", "POST": "post", "PATCH": "patch", "DELETE": "delete"}


class _AccessRequest:
    """A user, a verb and a path: the key of a decision of the API server."""

    def __init__(self, user: ReviewedUser, verb: str, path: str) -> None:
        self.user = user
        self.verb = verb
        self.path = path
        extra = tuple(sorted(user.extra.items()))
        self._key = (user.username, user.uid, user.groups, extra, verb, path)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AccessRequest) and other._key == self._key


class Authorizer:
    """Checks whether a user may send a request."""

    def __init__(
        self,
        *,
        reviews: Requests | None,
        open_paths: tuple[str, ...],
        allowed_seconds: float = 10.0,
        denied_seconds: float = 10.0,
    ) -> None:
        """`reviews` sends the request to the API server; without it only the open paths can be read."""
        self._reviews = reviews
        self._open = frozenset(path.lstrip("/") for path in open_paths if not path.endswith("*"))
        self._open_prefixes = tuple(path.removesuffix("*").lstrip("/") for path in open_paths if path.endswith("*"))
        self._decisions: ResponseCache[_AccessRequest, AccessReviewStatus] = ResponseCache(
            self._review, lambda status: allowed_seconds if status.allowed else denied_seconds
        )

    def is_open(self, path: str) -> bool:
        """Return whether all users may read a path."""
        bare = path.lstrip("/")
        return bare in self._open or (bool(self._open_prefixes) and bare.startswith(self._open_prefixes))

    async def check(self, user: ReviewedUser, request: Request) -> None:
        """Raise ApiError unless the user may send the request."""
        path = request.path
        if MASTERS in user.groups or self.is_open(path):
            return
        verb = _VERBS.get(request.method, request.method.lower())
        reason = ""
        if self._reviews is not None:
            try:
                status = await self._decisions.get(_AccessRequest(user, verb, path))
            except CallError as error:
                log.error("Unable to authorize the request", err=error, user=user.username, path=path)
                raise ApiError(500, "InternalError", "the API server could not authorize the request") from None
            if status.allowed and not status.denied:
                return
            reason = f": {status.reason}" if status.reason else ""
        message = f'forbidden: User "{user.username}" cannot {verb} path "{path}"{reason}'
        raise ApiError(403, "Forbidden", message, details={})

    async def _review(self, request: _AccessRequest) -> AccessReviewStatus:
        assert self._reviews is not None
        return await self._reviews.review_access(request.user, request.verb, request.path)

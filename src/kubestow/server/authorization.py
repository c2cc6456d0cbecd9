"""Who may read: some paths everybody, all paths `system:masters`, the others whom the API server allows."""

from kubestow.api.failures import CallError
from kubestow.client.requests import Requests
from kubestow.client.reviews import AccessReviewStatus, ReviewedUser
from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request
from kubestow.server.remembering import Remembered
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

MASTERS = "system:masters"
_VERBS = {"GET": "get", "HEAD": "get", "PUT": "put", "POST": "post", "PATCH": "patch", "DELETE": "delete"}


class _Question:
    """Whether a user may do something to a path; equal questions have equal answers."""

    def __init__(self, user: ReviewedUser, verb: str, path: str) -> None:
        self.user = user
        self.verb = verb
        self.path = path
        extra = tuple(sorted(user.extra.items()))
        self._key = (user.username, user.uid, user.groups, extra, verb, path)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Question) and other._key == self._key


class Authorizer:
    """Lets requests pass, or raises ApiError."""

    def __init__(
        self,
        *,
        reviews: Requests | None,
        open_paths: tuple[str, ...],
        allowed_seconds: float = 10.0,
        denied_seconds: float = 10.0,
    ) -> None:
        """`reviews` asks the API server; without it only the open paths can be read."""
        self._reviews = reviews
        self._open = frozenset(path.lstrip("/") for path in open_paths if not path.endswith("*"))
        self._open_prefixes = tuple(path.removesuffix("*").lstrip("/") for path in open_paths if path.endswith("*"))
        self._answers: Remembered[_Question, AccessReviewStatus] = Remembered(
            self._ask, lambda answer: allowed_seconds if answer.allowed else denied_seconds
        )

    def is_open(self, path: str) -> bool:
        """Whether everybody may read this path."""
        bare = path.lstrip("/")
        return bare in self._open or (bool(self._open_prefixes) and bare.startswith(self._open_prefixes))

    async def check(self, user: ReviewedUser, request: Request) -> None:
        """Raises ApiError unless the user may."""
        path = request.path
        if MASTERS in user.groups or self.is_open(path):
            return
        verb = _VERBS.get(request.method, request.method.lower())
        reason = ""
        if self._reviews is not None:
            try:
                answer = await self._answers.get(_Question(user, verb, path))
            except CallError as error:
                log.error("Unable to authorize the request", err=error, user=user.username, path=path)
                raise ApiError(500, "InternalError", "the API server could not be asked whether you may") from None
            if answer.allowed and not answer.denied:
                return
            reason = f": {answer.reason}" if answer.reason else ""
        message = f'forbidden: User "{user.username}" cannot {verb} path "{path}"{reason}'
        raise ApiError(403, "Forbidden", message, details={})

    async def _ask(self, question: _Question) -> AccessReviewStatus:
        assert self._reviews is not None
        return await self._reviews.review_access(question.user, question.verb, question.path)

"""Requests by which the API server authenticates and authorizes clients of this process."""

from kubestow.api.meta import Base


class ReviewedUser(Base, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewStatus(Base, frozen=True):
    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()
    error: str = ""


class TokenReview(Base, frozen=True):
    status: TokenReviewStatus = TokenReviewStatus()


class AccessReviewStatus(Base, frozen=True):
    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluationError: str = ""


class SubjectAccessReview(Base, frozen=True):
    status: AccessReviewStatus = AccessReviewStatus()

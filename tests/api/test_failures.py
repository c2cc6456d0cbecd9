"""Classification of error responses by reason, or else by code."""

import pytest

from kubestow.api.envelopes import Status, StatusCause, StatusDetails
from kubestow.api.failures import (
    REASONS,
    ApiError,
    ConflictError,
    GoneError,
    ServerFailedError,
    ServerTimedOutError,
    VersionTooLargeError,
    failure_of,
)

TOO_LARGE = StatusDetails(causes=(StatusCause("ResourceVersionTooLarge"),))


@pytest.mark.parametrize("reason", REASONS)
def test_the_reason_determines_the_type(reason: str) -> None:
    """The code does not matter."""
    _, kind = REASONS[reason]
    assert type(failure_of("GET /a", 418, Status(reason=reason))) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (409, ConflictError),
        (410, GoneError),
        (500, ServerFailedError),
        (504, ServerTimedOutError),
        (599, ServerFailedError),
        (418, ApiError),
    ],
)
def test_without_a_reason_the_code_determines_the_type(code: int, kind: type[ApiError]) -> None:
    """The type is the most general one with the code."""
    assert type(failure_of("GET /a", code, Status())) is kind
    assert type(failure_of("GET /a", 0, Status(code=code, reason="Novel"))) is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (
            Status(reason="Timeout", details=StatusDetails(causes=(StatusCause("ResourceVersionTooLarge"),))),
            VersionTooLargeError,
        ),
        (Status(reason="Timeout", message="Too large resource version: 9, current: 3"), VersionTooLargeError),
        (Status(reason="Timeout", message="timed out"), ServerTimedOutError),
    ],
)
def test_too_large_resource_versions_are_detected(status: Status, kind: type[ApiError]) -> None:
    """The cause is set, or, by old servers, only the message."""
    assert type(failure_of("GET /a", 504, status)) is kind


def test_the_time_of_the_next_attempt() -> None:
    """The header takes precedence over the details."""
    status = Status(reason="TooManyRequests", details=StatusDetails(retryAfterSeconds=3))
    assert failure_of("GET /a", 429, status).retry_after == 3.0
    assert failure_of("GET /a", 429, status, 7.0).retry_after == 7.0
    assert failure_of("GET /a", 429, Status()).retry_after is None

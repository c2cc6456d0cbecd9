"""An answer that says no, told apart by its reason, or else by its code."""

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
def test_the_reason_decides(reason: str) -> None:
    """Whatever code it comes with."""
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
def test_without_a_reason_the_code_decides(code: int, kind: type[ApiError]) -> None:
    """The most general type of those with the code."""
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
def test_a_version_that_the_server_has_not_reached(status: Status, kind: type[ApiError]) -> None:
    """Said as a cause, or by old servers in words."""
    assert type(failure_of("GET /a", 504, status)) is kind


def test_when_to_come_back() -> None:
    """As the header says, or else as the details say."""
    status = Status(reason="TooManyRequests", details=StatusDetails(retryAfterSeconds=3))
    assert failure_of("GET /a", 429, status).retry_after == 3.0
    assert failure_of("GET /a", 429, status, 7.0).retry_after == 7.0
    assert failure_of("GET /a", 429, Status()).retry_after is None

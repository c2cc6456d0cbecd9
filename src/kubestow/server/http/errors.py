"""Refusals, written on the wire as a Kubernetes Status object."""

from typing import Any


class ApiError(Exception):
    """A request that cannot be carried out, with the Status that says why."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers
        self.metadata = metadata or {}

    def status(self) -> dict[str, Any]:
        """The Status object for this error."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


def bad_request(message: str) -> ApiError:
    """The request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def too_large(limit: int) -> ApiError:
    """The body is over the limit."""
    return ApiError(413, "RequestEntityTooLarge", f"the request body is larger than {limit} bytes")

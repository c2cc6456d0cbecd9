"""Error responses: Kubernetes Status objects."""

from typing import Any


class ApiError(Exception):
    """A request failed; contains the Status of the response."""

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
        """Return the Status object of this error."""
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
    """Return the error for an invalid request."""
    return ApiError(400, "BadRequest", message)


def too_large(limit: int) -> ApiError:
    """Return the error for a body over the limit."""
    return ApiError(413, "RequestEntityTooLarge", f"the request body is larger than {limit} bytes")

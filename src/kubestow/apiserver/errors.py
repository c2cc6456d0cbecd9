"""The errors of the API: each function returns an ApiError, sent to the client as a Status object with details."""

from collections.abc import Iterable
from typing import Any

from kubestow.server.http.errors import ApiError as ApiError
from kubestow.server.http.errors import bad_request as bad_request

Cause = tuple[str, str, str]
"""Field, reason and message of one validation error."""


def _details(group: str, plural: str, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> ApiError:
    """Return the error for an object that does not exist."""
    message = f'{_qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(group, plural, name))


def no_such_path() -> ApiError:
    """Return the error for a path under which no resource is served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """Return the error for an object whose name is already in use."""
    message = f'{_qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """Return the error for an operation that the state of the object does not permit."""
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(group, plural, name))


def outdated(group: str, plural: str, name: str) -> ApiError:
    """Return the error for a write based on an earlier version of the object."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(group, plural, name, why)


def failed_precondition(group: str, plural: str, name: str, label: str, wanted: str, actual: str) -> ApiError:
    """Return the error for an object that does not match a precondition."""
    why = f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}"
    return conflict(group, plural, name, why)


def apply_conflict(causes: list[Cause]) -> ApiError:
    """Return the error for an apply of fields that other managers own."""
    fields: dict[str, list[str]] = {}
    for field, _, message in causes:
        fields.setdefault(message.replace("conflict", "conflicts", 1), []).append(field)
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0][2]}: {causes[0][0]}"
    else:
        lines = [line for owner in sorted(fields) for line in (f"{owner}:", *(f"- {field}" for field in fields[owner]))]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, details={"causes": _causes(causes)})


def invalid(group: str, kind: str, name: str, causes: list[Cause]) -> ApiError:
    """Return the error for an object with invalid values."""
    lines = [f"{field}: {message}" for field, _, message in causes]
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    details = _details(group, kind, name)
    details["causes"] = _causes(causes)
    return ApiError(422, "Invalid", f'{_qualified(group, kind)} "{name}" is invalid: {text}', details=details)


def _causes(causes: Iterable[Cause]) -> list[dict[str, str]]:
    return [{"reason": reason, "message": message, "field": field} for field, reason, message in causes]


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    """Return the error for an operation that authorization, admission or the state of the cluster does not permit."""
    what = f'{_qualified(group, plural)} "{name}"' if name else _qualified(group, plural)
    message = f"{what} is forbidden: {why}" if plural else f"forbidden: {why}"
    return ApiError(403, "Forbidden", message, details=_details(group, plural, name) if plural else {})


def unauthorized() -> ApiError:
    """Return the error for a request without valid credentials."""
    return ApiError(401, "Unauthorized", "Unauthorized", headers=(("WWW-Authenticate", "Bearer"),))


def method_not_allowed(method: str) -> ApiError:
    """Return the error for a method that the resource does not support."""
    message = f"the server does not allow the method {method} on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def expired(message: str, continue_token: str = "") -> ApiError:
    """Return the error for a version that is no longer retained, with the token to continue a list, if any."""
    return ApiError(410, "Expired", message, metadata={"continue": continue_token} if continue_token else {})


def unsupported_media_type(got: str, supported: Iterable[str]) -> ApiError:
    """Return the error for a request body in an unsupported format."""
    message = (
        f"the body of the request was in an unknown format ({got or 'none'}) - accepted media types include: "
        f"{', '.join(supported)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable() -> ApiError:
    """Return the error for a request that accepts none of the supported formats."""
    return ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json")


def too_many_requests(message: str, *, causes: Iterable[Cause] = (), retry_after: int = 0) -> ApiError:
    """Return the error for a request to retry later."""
    details: dict[str, Any] = {}
    listed = _causes(causes)
    if listed:
        details["causes"] = listed
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = (("Retry-After", str(retry_after)),) if retry_after else ()
    return ApiError(429, "TooManyRequests", message, details=details, headers=headers)


def not_implemented(message: str) -> ApiError:
    """Return the error for a feature that this control plane does not implement."""
    return ApiError(501, "NotImplemented", message)


def internal(message: str) -> ApiError:
    """Return the error for a defect of the server."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")

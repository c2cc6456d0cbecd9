"""Refusals: every error a client sees is an ApiError, written on the wire as a Status object that names the culprit."""

from collections.abc import Iterable
from typing import Any

from kubestow.server.http.errors import ApiError as ApiError
from kubestow.server.http.errors import bad_request as bad_request

Cause = tuple[str, str, str]
"""Field, reason and message of one thing that is wrong."""


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
    """The object is not there."""
    message = f'{_qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(group, plural, name))


def no_such_path() -> ApiError:
    """No resource is served under this path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """An object of that name is there already."""
    message = f'{_qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """The object is in a state in which this cannot be done."""
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(group, plural, name))


def outdated(group: str, plural: str, name: str) -> ApiError:
    """The object has another version than the one to be changed."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(group, plural, name, why)


def failed_precondition(group: str, plural: str, name: str, label: str, wanted: str, actual: str) -> ApiError:
    """The object is not the one that is meant."""
    why = f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {actual}"
    return conflict(group, plural, name, why)


def apply_conflict(causes: list[Cause]) -> ApiError:
    """Fields to be applied are owned by somebody else."""
    told: dict[str, list[str]] = {}
    for field, _, message in causes:
        told.setdefault(message.replace("conflict", "conflicts", 1), []).append(field)
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0][2]}: {causes[0][0]}"
    else:
        lines = [line for who in sorted(told) for line in (f"{who}:", *(f"- {field}" for field in told[who]))]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, details={"causes": _causes(causes)})


def invalid(group: str, kind: str, name: str, causes: list[Cause]) -> ApiError:
    """Values that may not be."""
    lines = [f"{field}: {message}" for field, _, message in causes]
    text = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    details = _details(group, kind, name)
    details["causes"] = _causes(causes)
    return ApiError(422, "Invalid", f'{_qualified(group, kind)} "{name}" is invalid: {text}', details=details)


def _causes(causes: Iterable[Cause]) -> list[dict[str, str]]:
    return [{"reason": reason, "message": message, "field": field} for field, reason, message in causes]


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    """This user may not do this, or nobody may do it now."""
    what = f'{_qualified(group, plural)} "{name}"' if name else _qualified(group, plural)
    return ApiError(403, "Forbidden", f"{what} is forbidden: {why}", details=_details(group, plural, name))


def unauthorized() -> ApiError:
    """Nobody the server knows."""
    return ApiError(401, "Unauthorized", "Unauthorized", headers=(("WWW-Authenticate", "Bearer"),))


def method_not_allowed(method: str) -> ApiError:
    """The resource does not have this verb."""
    message = f"the server does not allow the method {method} on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def expired(message: str, go_on: str = "") -> ApiError:
    """The version asked for is no longer retained; a list may go on at another."""
    return ApiError(410, "Expired", message, metadata={"continue": go_on} if go_on else {})


def unsupported_media_type(got: str, supported: Iterable[str]) -> ApiError:
    """A body in a format the server does not read."""
    message = (
        f"the body of the request was in an unknown format ({got or 'none'}) - accepted media types include: "
        f"{', '.join(supported)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable() -> ApiError:
    """No format the client would accept."""
    return ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json")


def too_many_requests(message: str, *, causes: Iterable[Cause] = (), retry_after: int = 0) -> ApiError:
    """Not now; try again."""
    details: dict[str, Any] = {}
    listed = _causes(causes)
    if listed:
        details["causes"] = listed
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = (("Retry-After", str(retry_after)),) if retry_after else ()
    return ApiError(429, "TooManyRequests", message, details=details, headers=headers)


def not_implemented(message: str) -> ApiError:
    """Something this control plane does not do."""
    return ApiError(501, "NotImplemented", message)


def internal(message: str) -> ApiError:
    """A defect of the server."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}")

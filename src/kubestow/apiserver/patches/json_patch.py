"""JSON patch (RFC 6902): a list of operations on paths, applied with the jsonpatch library."""

from typing import Any

from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed, JsonPointerException

from kubestow.apiserver.errors import ApiError, bad_request

_MAX_OPERATIONS = 10_000
_MAX_MESSAGE = 200


def apply(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """Return the document after all operations; it may be modified in place. Raises ApiError."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        raise bad_request(f"a JSON patch may have at most {_MAX_OPERATIONS} operations")
    result: Any = document
    for index, operation in enumerate(operations):
        try:
            result = JsonPatch([operation]).apply(result, in_place=True)
        except (JsonPatchException, JsonPointerException) as error:
            what = f"{operation.get('op')} {operation.get('path')}" if isinstance(operation, dict) else "not an object"
            failed = isinstance(error, JsonPatchTestFailed)
            why = "the test failed: the value differs" if failed else str(error)[:_MAX_MESSAGE]
            message = f"JSON patch operation {index} ({what}): {why}"
            raise ApiError(422, "Invalid", message) from error
    if not isinstance(result, dict):
        raise bad_request("the result of the JSON patch is not an object")
    return result

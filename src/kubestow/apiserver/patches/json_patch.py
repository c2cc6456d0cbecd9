"""JSON patch (RFC 6902): a list of operations on paths, carried out by the jsonpatch library."""

from typing import Any

from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed, JsonPointerException

from kubestow.apiserver.errors import ApiError, bad_request

_MAX_OPERATIONS = 10_000
_MAX_WORDS = 200


def apply(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The document after all operations; it may be altered."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        raise bad_request(f"a JSON patch may have at most {_MAX_OPERATIONS} operations")
    result: Any = document
    for index, operation in enumerate(operations):
        try:
            result = JsonPatch([operation]).apply(result, in_place=True)
        except (JsonPatchException, JsonPointerException) as error:
            what = f"{operation.get('op')} {operation.get('path')}" if isinstance(operation, dict) else "no object"
            failed = isinstance(error, JsonPatchTestFailed)
            why = "the test failed, the value is another" if failed else str(error)[:_MAX_WORDS]
            message = f"JSON patch operation {index} ({what}): {why}"
            raise ApiError(422, "Invalid", message) from error
    if not isinstance(result, dict):
        raise bad_request("the JSON patch replaced the object with something that is none")
    return result

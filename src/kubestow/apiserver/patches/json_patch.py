"""JSON patch (RFC 6902): a list of operations on paths, applied with the jsonpatch library.

A few operations can describe a huge result: each may copy what the previous ones have copied. The size of all copies
together is limited, as in kube-apiserver, and so is the depth of the result.
"""

from typing import Any

import msgspec
from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed, JsonPointer, JsonPointerException

from kubestow.api.files.yaml_documents import MAX_DEPTH
from kubestow.apiserver.errors import ApiError, bad_request
from kubestow.apiserver.patches.depth import require_shallow

_MAX_OPERATIONS = 10_000
_MAX_COPIED = 3 * 1024 * 1024
"""Maximum size of all copied values as JSON, in bytes; that of a request body in kube-apiserver."""
_MAX_MESSAGE = 200


def apply(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """Return the document after all operations; it may be modified in place. Raises ApiError."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        raise bad_request(f"a JSON patch may have at most {_MAX_OPERATIONS} operations")
    copied = 0
    result: Any = document
    for index, operation in enumerate(operations):
        try:
            copied += _copied_size(operation, result)
            if copied > _MAX_COPIED:
                raise bad_request(f"the operations of a JSON patch may copy at most {_MAX_COPIED} bytes")
            result = JsonPatch([operation]).apply(result, in_place=True)
        except (JsonPatchException, JsonPointerException) as error:
            what = f"{operation.get('op')} {operation.get('path')}" if isinstance(operation, dict) else "not an object"
            failed = isinstance(error, JsonPatchTestFailed)
            why = "the test failed: the value differs" if failed else str(error)[:_MAX_MESSAGE]
            message = f"JSON patch operation {index} ({what}): {why}"
            raise ApiError(422, "Invalid", message) from error
    if not isinstance(result, dict):
        raise bad_request("the result of the JSON patch is not an object")
    require_shallow(result)
    return result


def _copied_size(operation: Any, document: Any) -> int:
    """Return the size of what an operation copies; raise ApiError if its path leads deeper than an object may be."""
    if not isinstance(operation, dict):
        return 0
    path, source = operation.get("path"), operation.get("from")
    if isinstance(path, str) and path.count("/") > MAX_DEPTH:
        raise bad_request(f"a path of the JSON patch has more than {MAX_DEPTH} parts")
    if operation.get("op") != "copy" or not isinstance(source, str):
        return 0
    return len(msgspec.json.encode(JsonPointer(source).resolve(document)))

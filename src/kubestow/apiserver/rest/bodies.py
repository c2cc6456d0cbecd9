"""Decoding of request bodies: JSON, YAML or protobuf; raises an ApiError for anything else."""

from typing import Any

import msgspec

from kubestow.api.files.errors import DocumentError
from kubestow.api.files.yaml_documents import MAX_DEPTH, REPEATED, yaml_documents
from kubestow.apiserver.errors import bad_request, unsupported_media_type
from kubestow.apiserver.patches.depth import require_shallow
from kubestow.apiserver.schema import protobuf
from kubestow.apiserver.store.records import decode
from kubestow.client.protobuf import ProtobufError
from kubestow.server.http.messages import Request

_JSON = ("application/json", "", "*/*")
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


def media_type(request: Request) -> str:
    """Return the media type of a request's body, without parameters."""
    return request.header(b"content-type").partition(";")[0].strip().lower()


def read_json(body: bytes) -> Any:
    """Decode a JSON document."""
    try:
        value = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise bad_request("the body is nested too deeply") from error
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        require_shallow(value)
    return value


def read_yaml(body: bytes) -> Any:
    """Decode the first YAML document; JSON is YAML, too."""
    if body[:1] in (b"{", b"["):
        return read_json(body)
    try:
        document = next(yaml_documents(body.decode()), None)
        # Each alias becomes a value of its own.
        tree = None if document is None else decode(msgspec.json.encode(document.tree))
    except (DocumentError, UnicodeDecodeError, OverflowError) as error:
        raise bad_request(f"the body is not valid YAML: {error}") from error
    faults = [fault for fault in document.faults if fault.message != REPEATED] if document is not None else []
    if faults:
        raise bad_request(f"the body is not valid YAML: {faults[0]}")
    return tree


def read_document(request: Request) -> Any:
    """Decode the body of a request by its media type."""
    media = media_type(request)
    if media in _JSON:
        return read_json(request.body)
    if media in _YAML:
        return read_yaml(request.body)
    if media == _PROTOBUF:
        return _read_protobuf(request.body)
    raise unsupported_media_type(media, ("application/json", "application/yaml", _PROTOBUF))


def _read_protobuf(body: bytes) -> dict[str, Any]:
    try:
        api_version, kind, raw = protobuf.envelope(body)
        struct = protobuf.struct_for(api_version, kind)
        if struct is None:
            raise bad_request(f"kind {kind!r} in {api_version!r} is not supported as protobuf; send JSON")
        document = protobuf.read(struct, raw)
    except ProtobufError as error:
        raise bad_request(f"the body is not valid protobuf: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **document}


def read_object(request: Request) -> dict[str, Any]:
    """Decode the body of a request, which must be an object."""
    document = read_document(request)
    if not isinstance(document, dict):
        raise bad_request("the body is not an object")
    return document


def require_kind(document: dict[str, Any], api_version: str, kind: str) -> None:
    """Raise ApiError if the apiVersion or kind of a document, where set, differs from that of the path."""
    for key, expected in (("apiVersion", api_version), ("kind", kind)):
        given = document.get(key)
        if given not in (None, "", expected):
            raise bad_request(
                f"{key} in the body is {given!r}, but this path takes {kind} of {api_version}"
                if isinstance(given, str)
                else f"{key} must be a string"
            )

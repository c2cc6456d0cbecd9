"""Decoding of JSON into objects.

The fast path decodes straight into the Struct. The API may send `null` for any empty field, which the Structs do not
accept (a Struct field is a value or its default, so that readers never test for None twice); such an object is
decoded a second time with its nulls removed.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec

from kubestow.api.whole_objects import WholePendingPod

T = TypeVar("T")

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised for bytes that are not JSON, or JSON too deep for any API object."""


class DecodeError(ValueError):
    """JSON that is not an object of the expected kind; the message names the field."""


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


@cache
def keeps_source(kind: type) -> bool:
    """Return whether objects of this kind contain their JSON source, in the field `source`, which the codec adds.

    These are the kinds that the scheduler updates with PUT, so that it must send back unknown fields; those that are
    sent to extenders; and those whose fields are read by path.
    """
    return issubclass(kind, msgspec.Struct) and any(
        field.name == "source" and field.type is msgspec.Raw for field in msgspec.structs.fields(kind)
    )


def _decoder(kind: type) -> msgspec.json.Decoder[Any]:
    found = _decoders.get(kind)
    if found is None:
        found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def decode(kind: type[T], data: bytes | msgspec.Raw) -> T:
    """Decode one object of a kind. Raises DecodeError."""
    decoded: T
    declared: type = kind
    try:
        decoded = _decoder(kind).decode(data)
    except msgspec.ValidationError:
        decoded = _decode_without_nulls(kind, data)
    except NOT_JSON as error:
        raise DecodeError(f"not valid JSON: {error}") from None
    if keeps_source(declared) and not (isinstance(decoded, WholePendingPod) and decoded.spec.nodeName):
        # No other code has a reference to the object yet.
        msgspec.structs.force_setattr(decoded, "source", msgspec.Raw(bytes(data)))  # type: ignore[arg-type]
    return decoded


def convert(kind: type[T], value: object) -> T:
    """Convert a tree of dicts and lists, e.g. from YAML, into an object of a kind. Raises DecodeError."""
    try:
        data = msgspec.json.encode(value)
    except (TypeError, RecursionError, UnicodeEncodeError) as error:
        raise DecodeError(f"not an object that JSON can represent: {error}") from None
    return decode(kind, data)


def _decode_without_nulls(kind: type[T], data: bytes | msgspec.Raw) -> T:
    try:
        # By way of JSON, not by msgspec.convert, which cannot fill fields of type Raw.
        decoded: T = _decoder(kind).decode(msgspec.json.encode(without_nulls(msgspec.json.decode(data))))
    except msgspec.ValidationError as error:
        raise DecodeError(f"not a valid {kind.__name__}: {error}") from None
    except NOT_JSON as error:
        raise DecodeError(f"not valid JSON: {error}") from None
    return decoded


def without_nulls(value: Any) -> Any:
    """Return a copy of a tree without its null values."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(v) for v in value if v is not None]
    return value

"""Encodes values as CBOR (RFC 8949) in the form of Kubernetes: with the tag of CBOR itself, and strings as bytes."""

from typing import Any

_SELF_DESCRIBED = b"\xd9\xd9\xf7"
_UNSIGNED, _BYTES, _ARRAY, _MAP = 0, 2, 4, 5


def encode(value: Any) -> bytes:
    """Return the encoded value, which consists of mappings, lists, strings and integers that are not negative."""
    return _SELF_DESCRIBED + _item(value)


def _item(value: Any) -> bytes:
    if isinstance(value, int):
        return _head(_UNSIGNED, value)
    if isinstance(value, str):
        text = value.encode()
        return _head(_BYTES, len(text)) + text
    if isinstance(value, list):
        return _head(_ARRAY, len(value)) + b"".join(map(_item, value))
    # The keys are in the order of their encoded form.
    pairs = sorted((_item(key), _item(part)) for key, part in value.items())
    return _head(_MAP, len(pairs)) + b"".join(key + part for key, part in pairs)


def _head(kind: int, number: int) -> bytes:
    """Return a major type with its number, in the shortest form."""
    if number < 24:
        return bytes([kind << 5 | number])
    power = next(power for power in range(4) if number < 1 << (8 << power))
    return bytes([kind << 5 | 24 + power]) + number.to_bytes(1 << power, "big")

"""Updates of resource claims in protobuf, for claims that do not survive a round trip in JSON.

A claim may have opaque parameters for a driver. The server stores them byte by byte but returns them in JSON without
insignificant spaces, and rejects an update with the result as a change of an immutable field. Protobuf preserves them.
Two concatenated messages are one message with the fields of both: lists are joined, of other fields the last wins. So
additions to a claim are appended to its message, whatever else it contains.
"""

from collections.abc import Iterator, Sequence

from kubestow.api.devices import ResourceClaimConsumer
from kubestow.api.failures import BadAnswerError

PROTOBUF = "application/vnd.kubernetes.protobuf"

MAGIC = b"k8s\x00"
_VARINT, _FIXED64, BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types; that of strings and messages is `BYTES`."""
_TYPE, _OBJECT = 1, 2
"""Fields of the envelope."""
_METADATA, _STATUS = 1, 3
"""Fields of a claim."""
_RESOURCE_VERSION, _FINALIZERS = 6, 14
_RESERVED_FOR = 2
_RESOURCE, _NAME, _UID = 3, 4, 5
"""Fields of a consumer."""


class ProtobufError(ValueError):
    """Bytes that are not a valid message of the expected type."""


def with_additions(
    claim: bytes, version: str, finalizers: Sequence[str] = (), consumers: Sequence[ResourceClaimConsumer] = ()
) -> bytes:
    """Return a received claim with additions, which the server accepts only at this version. Raises BadAnswerError."""
    if not claim.startswith(MAGIC):
        raise BadAnswerError("the server sent a claim that is not in the requested protobuf format")
    try:
        parts = {number: as_bytes(value) for number, _, value in fields_of(claim[len(MAGIC) :])}
    except ProtobufError:
        raise BadAnswerError("the server sent a claim with malformed protobuf") from None
    metadata = length_delimited(_RESOURCE_VERSION, version.encode())
    metadata += b"".join(length_delimited(_FINALIZERS, name.encode()) for name in finalizers)
    status = b"".join(length_delimited(_RESERVED_FOR, _consumer_message(consumer)) for consumer in consumers)
    additions = length_delimited(_METADATA, metadata) + (length_delimited(_STATUS, status) if status else b"")
    return (
        MAGIC
        + length_delimited(_TYPE, parts.get(_TYPE, b""))
        + length_delimited(_OBJECT, parts.get(_OBJECT, b"") + additions)
    )


def _consumer_message(consumer: ResourceClaimConsumer) -> bytes:
    texts = ((_RESOURCE, consumer.resource), (_NAME, consumer.name), (_UID, consumer.uid))
    return b"".join(length_delimited(number, text.encode()) for number, text in texts)


def fields_of(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield the number, wire type and value of each field of a message. Raises ProtobufError."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint_at(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = varint_at(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = varint_at(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"field {number} has an unknown wire type")
        if at + size > end:
            raise ProtobufError("the message is truncated")
        yield number, wire, data[at : at + size]
        at += size


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position and the position after it. Raises ProtobufError."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtobufError("the message is truncated")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def as_bytes(value: int | bytes) -> bytes:
    """Return the value of a field that is no number. Raises ProtobufError."""
    if isinstance(value, bytes):
        return value
    raise ProtobufError("a field is a number instead of bytes")


def length_delimited(number: int, content: bytes) -> bytes:
    """Return a field that contains a string or a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a number in the fewest bytes, with seven bits in each."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])

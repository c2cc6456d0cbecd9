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

_MAGIC = b"k8s\x00"
_BYTES = 2
"""The wire type of strings and messages; an envelope has no other."""
_TYPE, _OBJECT = 1, 2
"""Fields of the envelope."""
_METADATA, _STATUS = 1, 3
"""Fields of a claim."""
_RESOURCE_VERSION, _FINALIZERS = 6, 14
_RESERVED_FOR = 2
_RESOURCE, _NAME, _UID = 3, 4, 5
"""Fields of a consumer."""


def with_additions(
    claim: bytes, version: str, finalizers: Sequence[str] = (), consumers: Sequence[ResourceClaimConsumer] = ()
) -> bytes:
    """Return a received claim with additions, which the server accepts only at this version. Raises BadAnswerError."""
    parts = dict(_fields(claim))
    metadata = length_delimited(_RESOURCE_VERSION, version.encode())
    metadata += b"".join(length_delimited(_FINALIZERS, name.encode()) for name in finalizers)
    status = b"".join(length_delimited(_RESERVED_FOR, _consumer_message(consumer)) for consumer in consumers)
    additions = length_delimited(_METADATA, metadata) + (length_delimited(_STATUS, status) if status else b"")
    return (
        _MAGIC
        + length_delimited(_TYPE, parts.get(_TYPE, b""))
        + length_delimited(_OBJECT, parts.get(_OBJECT, b"") + additions)
    )


def _consumer_message(consumer: ResourceClaimConsumer) -> bytes:
    texts = ((_RESOURCE, consumer.resource), (_NAME, consumer.name), (_UID, consumer.uid))
    return b"".join(length_delimited(number, text.encode()) for number, text in texts)


def _fields(envelope: bytes) -> Iterator[tuple[int, bytes]]:
    if not envelope.startswith(_MAGIC):
        raise BadAnswerError("the server sent a claim that is not in the requested protobuf format")
    at = len(_MAGIC)
    while at < len(envelope):
        tag, at = _number(envelope, at)
        length, at = _number(envelope, at)
        if tag & 7 != _BYTES or at + length > len(envelope):
            raise BadAnswerError("the server sent a claim with malformed protobuf")
        yield tag >> 3, envelope[at : at + length]
        at += length


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Decode a varint; return the number and the position after it."""
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        at, shift, continues = at + 1, shift + 7, data[at] & 0x80
        if not continues:
            break
    return number, at


def length_delimited(number: int, content: bytes) -> bytes:
    """Return a field that contains a string or a message."""
    return varint(number << 3 | _BYTES) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a number in the fewest bytes, with seven bits in each."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])

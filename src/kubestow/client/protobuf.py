"""Claims that JSON cannot carry to the API server and back unchanged, sent in protobuf.

A claim may have parameters for a driver. The server keeps them byte by byte, but tells them in JSON without the spaces
that they may have come with, and takes what comes back for a change of what cannot change. In protobuf they stay as
they are. Two messages one after the other are one message with the fields of both, of which the last counts unless it
is a list: so what is to be added to a claim is written behind it, whatever else is in it.
"""

from collections.abc import Iterator, Sequence

from kubestow.api.devices import ResourceClaimConsumer
from kubestow.api.failures import BadAnswerError

PROTOBUF = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_BYTES = 2
"""How texts and messages are marked; an envelope has nothing else."""
_TYPE, _OBJECT = 1, 2
"""Fields of the envelope."""
_METADATA, _STATUS = 1, 3
"""Fields of a claim."""
_RESOURCE_VERSION, _FINALIZERS = 6, 14
_RESERVED_FOR = 2
_RESOURCE, _NAME, _UID = 3, 4, 5
"""Fields of a consumer."""


def with_more(
    claim: bytes, version: str, finalizers: Sequence[str] = (), consumers: Sequence[ResourceClaimConsumer] = ()
) -> bytes:
    """A claim as the server sent it, with these at the end of what it has; refused if it is of another version."""
    parts = dict(_fields(claim))
    metadata = length_delimited(_RESOURCE_VERSION, version.encode())
    metadata += b"".join(length_delimited(_FINALIZERS, name.encode()) for name in finalizers)
    status = b"".join(length_delimited(_RESERVED_FOR, _consumer(of)) for of in consumers)
    more = length_delimited(_METADATA, metadata) + (length_delimited(_STATUS, status) if status else b"")
    return (
        _MAGIC
        + length_delimited(_TYPE, parts.get(_TYPE, b""))
        + length_delimited(_OBJECT, parts.get(_OBJECT, b"") + more)
    )


def _consumer(of: ResourceClaimConsumer) -> bytes:
    texts = ((_RESOURCE, of.resource), (_NAME, of.name), (_UID, of.uid))
    return b"".join(length_delimited(number, text.encode()) for number, text in texts)


def _fields(envelope: bytes) -> Iterator[tuple[int, bytes]]:
    if not envelope.startswith(_MAGIC):
        raise BadAnswerError("a claim that was asked for in protobuf came as something else")
    at = len(_MAGIC)
    while at < len(envelope):
        tag, at = _number(envelope, at)
        length, at = _number(envelope, at)
        if tag & 7 != _BYTES or at + length > len(envelope):
            raise BadAnswerError("a claim came in protobuf that cannot be understood")
        yield tag >> 3, envelope[at : at + length]
        at += length


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number, seven bits a byte, and where it ends."""
    number = shift = 0
    while at < len(data):
        number |= (data[at] & 0x7F) << shift
        at, shift, goes_on = at + 1, shift + 7, data[at] & 0x80
        if not goes_on:
            break
    return number, at


def length_delimited(number: int, content: bytes) -> bytes:
    """Return a field that is a text or a message."""
    return varint(number << 3 | _BYTES) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a number in as few bytes as it needs, seven bits in each."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])

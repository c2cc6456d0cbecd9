"""Fingerprints of the pods on a node, by which a report says what it includes.

A fingerprint is `pfp0v001` and a hash (XXH64) of the sorted hashes of the pods; that of a pod hashes its name, with the
hash of its namespace as the seed.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import unpack_from

_PREFIX = "pfp0v001"
_MASK = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of pods, given as namespaces and names."""
    hashes = sorted(_pod_hash(namespace, name) for namespace, name in pods)
    return f"{_PREFIX}{xxh64(b''.join(one.to_bytes(8, 'little') for one in hashes)):016x}"


@lru_cache(maxsize=16384)
def _pod_hash(namespace: str, name: str) -> int:
    return xxh64(name.encode(), xxh64(namespace.encode()))


def xxh64(data: bytes, seed: int = 0) -> int:
    """Return the 64-bit xxHash of some bytes."""
    prime1, prime2, prime3, prime4, prime5 = _PRIMES
    size, end = len(data), len(data) // 32 * 32
    if end:
        lanes = [seed + prime1 + prime2, seed + prime2, seed, seed - prime1]
        for start in range(0, end, 32):
            words = unpack_from("<4Q", data, start)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        found = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * prime1 + prime4) & _MASK
    else:
        found = seed + prime5
    found = (found + size) & _MASK
    for word, width in _rest(data, end):
        if width == 8:
            found = _rotated(found ^ _round(0, word), 27) * prime1 + prime4
        elif width == 4:
            found = _rotated(found ^ (word * prime1 & _MASK), 23) * prime2 + prime3
        else:
            found = _rotated(found ^ (word * prime5 & _MASK), 11) * prime1
        found &= _MASK
    found = ((found ^ found >> 33) * prime2) & _MASK
    found = ((found ^ found >> 29) * prime3) & _MASK
    return found ^ found >> 32


def _rest(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield the words after the blocks, with their widths."""
    while start < len(data):
        width = 8 if len(data) - start >= 8 else 4 if len(data) - start >= 4 else 1
        yield int.from_bytes(data[start : start + width], "little"), width
        start += width


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(word: int, bits: int) -> int:
    word &= _MASK
    return (word << bits | word >> 64 - bits) & _MASK

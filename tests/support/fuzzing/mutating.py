"""Nearly valid inputs: valid ones, with random changes in their bytes or in their tree."""

import json
import random
from typing import Any

NASTY: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    2**70,
    1e308,
    1e-320,
    "",
    "0",
    "-1",
    "1e400",
    "9223372036854775807",
    "9223372036854775808",
    "999999999999E",
    "1" * 400,
    "0." + "0" * 300 + "1",
    "NaN",
    "a/b/c",
    "../../etc/passwd",
    "\u202eright-to-left",
    "<script>alert(1)</script>",
    "\x00",
    "ü" * 300,
    "2026-02-30T25:61:61Z",
    "(" * 200,
    "(a+)+$" * 20,
    [],
    {},
    [[]] * 50,
    {"": ""},
    {"kind": "Pod"},
    {"requests": {"cpu": "1E", "memory": "-1"}},
)
_TOKENS = (b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\u0000", b"\\ud800", b"\xff\xfe", b"\x00", b"null", b"1e999")


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    """Return an input derived from valid ones."""
    data = rng.choice(seeds)
    if rng.random() < 0.5:
        try:
            tree = json.loads(data)
        except ValueError:
            pass
        else:
            for _ in range(rng.randrange(1, 4)):
                tree = _with_nasty_value(rng, tree)
            return json.dumps(tree).encode()
    for _ in range(rng.randrange(1, 5)):
        data = rng.choice(_OF_BYTES)(rng, data, seeds)
    return data


def _with_nasty_value(rng: random.Random, tree: Any) -> Any:
    """Return the tree with one value changed, at any depth."""
    if isinstance(tree, dict) and tree and rng.random() < 0.85:
        key = rng.choice(list(tree))
        match rng.randrange(12):
            case 0:
                return {other: value for other, value in tree.items() if other != key}
            case 1:
                return tree | {rng.choice(("", "spec", "metadata", "items", "x" * 100)): rng.choice(NASTY)}
        return tree | {key: _with_nasty_value(rng, tree[key])}
    if isinstance(tree, list) and tree and rng.random() < 0.85:
        index = rng.randrange(len(tree))
        match rng.randrange(10):
            case 0:
                return tree * rng.choice((0, 2, 20))
        return [*tree[:index], _with_nasty_value(rng, tree[index]), *tree[index + 1 :]]
    return rng.choice(NASTY)


def _flip(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    if not data:
        return b"\x00"
    at = rng.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]


def _cut(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randrange(1, 20) :]


def _repeat(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.randrange(1, 40)]
    return data[:start] + piece * rng.choice((2, 3, 50)) + data[start:]


def _insert(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_TOKENS) * rng.choice((1, 1, 1, 100)) + data[at:]


def _splice(rng: random.Random, data: bytes, seeds: list[bytes]) -> bytes:
    other = rng.choice(seeds)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


_OF_BYTES = (_flip, _cut, _remove, _repeat, _insert, _splice)

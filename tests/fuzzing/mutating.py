"""Inputs that are nearly right: a good one, changed in its bytes or in its tree, by chance from a seed."""

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


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    """One that is made of good ones."""
    data = chance.choice(seeds)
    if chance.random() < 0.5:
        try:
            tree = json.loads(data)
        except ValueError:
            pass
        else:
            for _ in range(chance.randrange(1, 4)):
                tree = _with_nasty_value(chance, tree)
            return json.dumps(tree).encode()
    for _ in range(chance.randrange(1, 5)):
        data = chance.choice(_OF_BYTES)(chance, data, seeds)
    return data


def _with_nasty_value(chance: random.Random, tree: Any) -> Any:
    """The tree with one value changed, at any depth."""
    if isinstance(tree, dict) and tree and chance.random() < 0.85:
        key = chance.choice(list(tree))
        match chance.randrange(12):
            case 0:
                return {other: value for other, value in tree.items() if other != key}
            case 1:
                return tree | {chance.choice(("", "spec", "metadata", "items", "x" * 100)): chance.choice(NASTY)}
        return tree | {key: _with_nasty_value(chance, tree[key])}
    if isinstance(tree, list) and tree and chance.random() < 0.85:
        index = chance.randrange(len(tree))
        match chance.randrange(10):
            case 0:
                return tree * chance.choice((0, 2, 20))
        return [*tree[:index], _with_nasty_value(chance, tree[index]), *tree[index + 1 :]]
    return chance.choice(NASTY)


def _flip(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    if not data:
        return b"\x00"
    at = chance.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]


def _cut(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _remove(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + data[start + chance.randrange(1, 20) :]


def _repeat(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    start = chance.randrange(len(data) + 1)
    piece = data[start : start + chance.randrange(1, 40)]
    return data[:start] + piece * chance.choice((2, 3, 50)) + data[start:]


def _insert(chance: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_TOKENS) * chance.choice((1, 1, 1, 100)) + data[at:]


def _splice(chance: random.Random, data: bytes, seeds: list[bytes]) -> bytes:
    other = chance.choice(seeds)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


_OF_BYTES = (_flip, _cut, _remove, _repeat, _insert, _splice)

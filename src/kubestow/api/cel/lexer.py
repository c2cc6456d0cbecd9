"""The tokens of an expression: names, literals with their values, operators."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from kubestow.api.cel.errors import CompileError, Issue
from kubestow.api.cel.values import INT_MAX, UINT_MAX, Uint


class Token(NamedTuple):
    """A token; operators, brackets and keywords are their own kind."""

    kind: str
    text: str
    offset: int


_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = "|".join(
    [
        r"[rR]\"\"\"[\s\S]*?\"\"\"",
        r"[rR]'''[\s\S]*?'''",
        r"[rR]\"[^\"\n\r]*\"",
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_PATTERN = re.compile(
    "|".join(
        [
            r"(?P<space>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<string>[bB]?(?:{_STRING}))",
            r"(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])",
            r"(?P<int>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)",
            r"(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        ]
    )
)
_KEYWORDS = {"true", "false", "null", "in"}


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of a source, the last of which has the kind "end"."""
    place = 0
    while place < len(source):
        match = _PATTERN.match(source, place)
        if match is None:
            raise CompileError.of(source, Issue(place, f"Syntax error: token recognition error at: '{source[place]}'"))
        kind, text = str(match.lastgroup), match[0]
        if kind == "operator" or text in _KEYWORDS:
            kind = text
        elif kind == "string" and text[0] in "bB":
            kind = "bytes"
        if kind != "space":
            yield Token(kind, text, place)
        place = match.end()
    yield Token("end", "<EOF>", place)


def value_of(token: Token, *, negative: bool = False) -> object:
    """Return the value of a literal. Raises ValueError."""
    text = token.text
    match token.kind:
        case "int":
            value = int(text, 16 if text.startswith("0x") else 10) if len(text) < 100 else INT_MAX + 2
            if value > INT_MAX + negative:
                raise ValueError("invalid int literal")
            return -value if negative else value
        case "uint":
            value = int(text[:-1], 16 if text.startswith("0x") else 10) if len(text) < 100 else UINT_MAX + 1
            if value > UINT_MAX:
                raise ValueError("invalid uint literal")
            return Uint(value)
        case "float":
            number = float(text)
            if number == float("inf"):
                raise ValueError("invalid double literal")
            return -number if negative else number
        case "string":
            return _unquote(text)
        case "bytes":
            return _unquote_bytes(text[1:])
    return {"true": True, "false": False, "null": None}[text]


_UNESCAPE = re.compile(r"\\(?:([0-3][0-7]{2})|[xX](..)|u(.{4})|U(.{8})|(.))", re.DOTALL)
_PLAIN = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def _content(literal: str) -> tuple[str, bool]:
    """Return the text between the quotes, and whether it is raw."""
    raw = literal[0] in "rR"
    text = literal[raw:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n"), raw


def _unquote(literal: str) -> str:
    content, raw = _content(literal)

    def unescape(escape: re.Match[str]) -> str:
        octal, byte, short, long, plain = escape.groups()
        if plain:
            return _PLAIN.get(plain, plain)
        code = int(octal, 8) if octal else int(byte or short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError("invalid unicode code point")
        return chr(code)

    return content if raw else _UNESCAPE.sub(unescape, content)


def _unquote_bytes(literal: str) -> bytes:
    content, raw = _content(literal)
    if raw:
        return content.encode()
    parts, place = [], 0
    for escape in _UNESCAPE.finditer(content):
        octal, byte, short, long, plain = escape.groups()
        if short or long:
            raise ValueError("unable to unescape string")
        parts.append(content[place : escape.start()].encode())
        parts.append(_PLAIN.get(plain, plain).encode() if plain else bytes([int(octal, 8) if octal else int(byte, 16)]))
        place = escape.end()
    return b"".join([*parts, content[place:].encode()])

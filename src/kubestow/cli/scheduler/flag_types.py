"""Types of flags: names, parsing and formatting as in kube-scheduler, its help and its /flagz."""

import ipaddress
import re
from collections.abc import Callable
from typing import Any

import msgspec

from kubestow.api import quantity
from kubestow.config.durations import Duration

_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_INT32 = 2**31
_INT64 = 2**63


class FlagType(msgspec.Struct, frozen=True):
    """The type of a flag; `parse` raises ValueError with a message that can follow the flag's name."""

    name: str
    """The name in help; empty for switches, which need no value."""
    parse: Callable[[str], Any]
    write: Callable[[Any], str] = str
    adds_up: bool = False
    """Whether the values of a repeated flag are concatenated; else the last one is used."""
    alone: str = ""
    """The value of the flag if none follows an equals sign; if empty, a value is required."""


def _bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _on_off(text: str) -> bool:
    if text in ("on", "off"):
        return text == "on"
    raise ValueError(f"{text!r} is neither on nor off")


def _whole(limit: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text, 0) if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)", text) else int("no number")
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if not -limit <= number < limit:
            raise ValueError(f"{text} is too large")
        return number

    return parse


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _ip(text: str) -> str:
    if not text.strip():
        return "0.0.0.0"  # noqa: S104 nothing is all, for kube-scheduler, too
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address") from None


def _strings(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    # Imported only now: lists are rare.
    import csv

    try:
        return tuple(next(csv.reader([text], strict=True)))
    except csv.Error as error:
        raise ValueError(f"{text!r} is not a list of values with commas between: {error}") from None


def _write_list(values: tuple[Any, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _int32s(text: str) -> tuple[int, ...]:
    parse = _whole(_INT32)
    return tuple(parse(part) for part in text.split(",")) if text else ()


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse `key=value` pairs. A single value may contain commas; of several pairs, those with commas are quoted."""
    found = []
    for part in (text.strip('"'),) if text.count("=") == 1 else _strings(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} must be formatted as key=value")
        found.append((key, value))
    return tuple(found)


def _cert_key(text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    files, _, domains = text.partition(":")
    certificate, comma, key = files.partition(",")
    if not (certificate and comma and key) or "," in key:
        raise ValueError(f"{text!r} is not of the form certificate,key or certificate,key:domain,domain")
    return ((certificate, key, tuple(domain for domain in domains.split(",") if domain)),)


def _write_cert_keys(values: tuple[tuple[str, str, tuple[str, ...]], ...]) -> str:
    written = [f"{cert},{key}" + (f":{','.join(domains)}" if domains else "") for cert, key, domains in values]
    return f"[{';'.join(written)}]"


def _level(text: str) -> int:
    number = _whole(_INT32)(text)
    if number < 0:
        raise ValueError(f"{text} is negative")
    return number


def _version(text: str) -> str:
    if text == "raw":
        return text
    try:
        return "true" if _bool(text) else ""
    except ValueError:
        raise ValueError(f"{text!r} is neither true, false nor raw") from None


BOOL = FlagType("", _bool, lambda value: "true" if value else "false", alone="true")
ON_OFF = FlagType("on|off", _on_off, lambda value: "on" if value else "off")
STRING = FlagType("string", str)
INT = FlagType("int", _whole(_INT64))
INT32 = FlagType("int32", _whole(_INT32))
FLOAT32 = FlagType("float32", _float, lambda value: f"{value:g}")
DURATION = FlagType("duration", Duration.parse)
IP = FlagType("ip", _ip)
STRINGS = FlagType("strings", _strings, _write_list, adds_up=True)
INT32_SLICE = FlagType("int32Slice", _int32s, _write_list, adds_up=True)
STRING_TO_STRING = FlagType(
    "stringToString", _pairs, lambda values: _write_list(tuple(map("=".join, values))), adds_up=True
)
FEATURE_GATES = FlagType("colonSeparatedMultimapStringString", _strings, ",".join, adds_up=True)
NAMED_CERT_KEY = FlagType("namedCertKey", _cert_key, _write_cert_keys, adds_up=True)
QUANTITY = FlagType("quantity", lambda text: quantity.value(text) if text else 0)
LEVEL = FlagType("Level", _level)
MODULES = FlagType("pattern=N,...", _strings, ",".join, adds_up=True)
VERSION = FlagType("version[=true]", _version, lambda value: value or "false", alone="true")

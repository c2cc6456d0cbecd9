"""What a log record carries as its message: the text and the values that belong to it, kept apart.

Formatters that know it (`log_formats`) write them their own way. Every other handler asks for the text of the record
and gets klog's form, without secrets:

    Moved pod pod="default/web" attempts=2
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubestow.telemetry.secrets import hide_in_text, showable

_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_LONGEST_BYTE = 0x7F
_LONGEST_BMP = 0xFFFF


class Message:
    """A text with values, and with the error that is the cause; a plain one is not quoted."""

    __slots__ = ("err", "plain", "text", "values")

    def __init__(
        self, text: str, err: BaseException | str | None, values: Mapping[str, Any], *, plain: bool = False
    ) -> None:
        self.text = text
        self.err = err
        self.values = values
        self.plain = plain

    def __str__(self) -> str:
        return self.shown_text() + self.shown_values()

    def shown_text(self) -> str:
        """The text without secrets."""
        return hide_in_text(self.text)

    def shown_error(self) -> str:
        """The error in words, without secrets."""
        return hide_in_text(str(self.err) or type(self.err).__name__)

    def shown_values(self) -> str:
        """Error and values as klog writes them, each after a space."""
        error = "" if self.err is None else f" err{_shown(self.shown_error())}"
        return error + "".join(f" {name}{_shown(showable(name, value))}" for name, value in self.values.items())


def quote(text: str) -> str:
    """The text in double quotes, everything unprintable escaped as Go escapes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def encode(value: Any) -> str:
    """A value as JSON."""
    return msgspec.json.encode(value).decode()


def _escape(letter: str) -> str:
    escaped = _ESCAPES.get(letter)
    if escaped is not None:
        return escaped
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code <= _LONGEST_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LONGEST_BMP else f"\\U{code:08x}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return _lines(value) if "\n" in value else "=" + quote(value)
    if value is None:
        return "=<nil>"
    return "=" + encode(value)


def _lines(text: str) -> str:
    indented = "".join(f"\t{line}\n" for line in text.removesuffix("\n").split("\n"))
    return f"=<\n{indented} >"

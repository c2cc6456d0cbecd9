"""The message object of a log record: the text and its values, kept apart.

The formatters in `log_formats` write each in their own form. Every other handler converts the message to a string,
which is klog's form, without secrets:

    Moved pod pod="default/web" attempts=2
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubestow.telemetry.secrets import redact, redact_text

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
_LAST_ASCII = 0x7F
_LAST_BMP = 0xFFFF


class Message:
    """A text with values, and with the error that is the cause; the text of a `plain` message is not quoted."""

    __slots__ = ("err", "plain", "text", "values")

    def __init__(
        self, text: str, err: BaseException | str | None, values: Mapping[str, Any], *, plain: bool = False
    ) -> None:
        self.text = text
        self.err = err
        self.values = values
        self.plain = plain

    def __str__(self) -> str:
        return self.redacted_text() + self.formatted_values()

    def redacted_text(self) -> str:
        """Return the text without secrets."""
        return redact_text(self.text)

    def redacted_error(self) -> str:
        """Return the text of the error without secrets, or its type if it has no text."""
        return redact_text(str(self.err) or type(self.err).__name__)

    def formatted_values(self) -> str:
        """Return the error and the values in klog's form, each after a space."""
        error = "" if self.err is None else f" err{_format_value(self.redacted_error())}"
        return error + "".join(f" {name}{_format_value(redact(name, value))}" for name, value in self.values.items())


def quote(text: str) -> str:
    """Return the text in double quotes, with unprintable characters escaped as in Go."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def encode(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def _escape(character: str) -> str:
    escaped = _ESCAPES.get(character)
    if escaped is not None:
        return escaped
    if character.isprintable():
        return character
    code = ord(character)
    if code <= _LAST_ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_BMP else f"\\U{code:08x}"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return _lines(value) if "\n" in value else "=" + quote(value)
    if value is None:
        return "=<nil>"
    return "=" + encode(value)


def _lines(text: str) -> str:
    indented = "".join(f"\t{line}\n" for line in text.removesuffix("\n").split("\n"))
    return f"=<\n{indented} >"

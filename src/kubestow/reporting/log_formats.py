"""How log entries are written: as klog writes text, or as Kubernetes components write JSON.

    I1115 06:12:26.453203   12345 retry.py:90] "Text" pod="default/web" attempts=2
    {"ts":1794723146453.203,"caller":"queue/retry.py:90","msg":"Text","v":3,"pod":"default/web","attempts":2}

In text, a value of several lines is indented below its name, between `<` and `>`. Errors come under `err`: first in
text, last in JSON, which tells them from news by the missing `v`.
"""

import os
from datetime import datetime
from typing import Any

import msgspec

from kubestow.reporting.logs import ERROR, Entry
from kubestow.reporting.secrets import hide_in_text, showable

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


def text_line(entry: Entry, now: float) -> str:
    """The entry as klog's text, with its line end."""
    moment = datetime.fromtimestamp(now)  # noqa: DTZ006 - klog writes local time
    file = entry.path.rpartition("/")[2]
    head = f"{entry.severity}{moment:%m%d %H:%M:%S.%f} {os.getpid():7d} {file}:{entry.line}] "
    return f"{head}{quote(hide_in_text(entry.message))}{_text_error(entry)}{_text_values(entry)}\n"


def json_line(entry: Entry, now: float) -> str:
    """The entry as a JSON object, with its line end."""
    fields: dict[str, Any] = {
        "ts": round(now * 1000, 4),
        "caller": f"{'/'.join(entry.path.split('/')[-2:])}:{entry.line}",
        "msg": hide_in_text(entry.message),
    }
    if entry.severity != ERROR:
        fields["v"] = entry.v
    fields.update((name, showable(name, value)) for name, value in entry.values.items())
    if entry.error is not None:
        fields["err"] = _error_text(entry.error)
    return _encode(fields) + "\n"


def quote(text: str) -> str:
    """The text in double quotes, everything unprintable escaped as Go escapes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


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


def _error_text(error: BaseException | str) -> str:
    return hide_in_text(str(error) or type(error).__name__)


def _text_error(entry: Entry) -> str:
    return "" if entry.error is None else f" err{_text_value(_error_text(entry.error))}"


def _text_values(entry: Entry) -> str:
    return "".join(f" {name}{_text_value(showable(name, value))}" for name, value in entry.values.items())


def _text_value(value: Any) -> str:
    if isinstance(value, str):
        return _lines(value) if "\n" in value else "=" + quote(value)
    if value is None:
        return "=<nil>"
    return "=" + _encode(value)


def _lines(text: str) -> str:
    indented = "".join(f"\t{line}\n" for line in text.removesuffix("\n").split("\n"))
    return f"=<\n{indented} >"


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()

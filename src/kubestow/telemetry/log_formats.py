"""The two formats of log records: klog's text, and the JSON of Kubernetes components.

    I1115 06:12:26.453203   12345 retry.py:90] "Text" pod="default/web"
    {"ts":1794723146453.203,"caller":"queue/retry.py:90","msg":"Text","v":3,"pod":{"name":"web","namespace":"default"}}

In text, a value of several lines is indented below its name, between `<` and `>`. The cause of an error is the value
`err`: first in text, last in JSON. JSON errors have no `v`. Records of libraries have the value `logger`.
"""

import logging
from datetime import datetime
from typing import Any

from kubestow.telemetry.log_messages import Message, encode, quote
from kubestow.telemetry.logs import verbosity_of
from kubestow.telemetry.secrets import redact


class TextFormatter(logging.Formatter):
    """Formats records as klog's text."""

    def format(self, record: logging.LogRecord) -> str:
        message = _message(record)
        moment = datetime.fromtimestamp(record.created)  # noqa: DTZ006 - klog writes local time
        file = record.pathname.rpartition("/")[2]
        head = f"{_severity(record)}{moment:%m%d %H:%M:%S.%f} {record.process or 0:7d} {file}:{record.lineno}] "
        text = message.redacted_text()
        return head + (text if message.plain and text.isprintable() else quote(text)) + message.formatted_values()


class JsonFormatter(logging.Formatter):
    """Formats records as JSON objects."""

    def format(self, record: logging.LogRecord) -> str:
        message = _message(record)
        fields: dict[str, Any] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{'/'.join(record.pathname.split('/')[-2:])}:{record.lineno}",
            "msg": message.redacted_text(),
        }
        if record.levelno < logging.ERROR:
            fields["v"] = verbosity_of(record)
        fields.update((name, _reference(name, redact(name, value))) for name, value in message.values.items())
        if message.err is not None:
            fields["err"] = message.redacted_error()
        return encode(fields)


def _reference(name: str, value: Any) -> Any:
    """Return the value; a pod as an object, as Kubernetes components write it in JSON."""
    if name != "pod" or not isinstance(value, str) or value.count("/") != 1:
        return value
    namespace, _, name = value.partition("/")
    return {"name": name, "namespace": namespace}


def _severity(record: logging.LogRecord) -> str:
    if record.levelno >= logging.ERROR:
        return "E"
    return "W" if record.levelno >= logging.WARNING else "I"


def _message(record: logging.LogRecord) -> Message:
    if isinstance(record.msg, Message):
        return record.msg
    values = {"logger": record.name}
    error: BaseException | None = None
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        values["stacktrace"] = logging.Formatter().formatException(record.exc_info)
    try:
        return Message(record.getMessage(), error, values)
    except Exception as fault:  # arguments that do not fit the format
        return Message(str(record.msg), fault, values)

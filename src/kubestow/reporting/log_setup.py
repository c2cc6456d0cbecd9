"""Where log lines go: set up once, by the command, from its flags.

Lines go to standard error. With split streams, news goes to standard output, errors and warnings to standard error;
then news may be collected in a buffer, which is written when it is full, before any error, and when `flush` is called
(as often as --log-flush-frequency says). What libraries tell Python's own `logging` comes out the same way.
"""

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from kubestow.reporting import logs
from kubestow.reporting.log_formats import json_line, text_line
from kubestow.reporting.logs import ERROR, INFO, WARNING, Entry, ModuleLevel

FORMATS: dict[str, Callable[[Entry, float], str]] = {"text": text_line, "json": json_line}

DETAILS = 4
"""The verbosity from which on debug messages of the project's own modules are told, and news of libraries."""
EVERYTHING = 8
"""The verbosity from which on debug messages of libraries are told."""


@dataclass(frozen=True)
class LogOptions:
    """The flags about logs."""

    format: str = "text"
    verbosity: int = 0
    modules: tuple[ModuleLevel, ...] = ()
    split_stream: bool = False
    info_buffer_size: int = 0

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"unknown log format {self.format!r}: choose one of {', '.join(sorted(FORMATS))}")
        if self.verbosity < 0:
            raise ValueError(f"log verbosity must not be negative, and is {self.verbosity}")


def parse_modules(text: str) -> tuple[ModuleLevel, ...]:
    """Read `pattern=N,pattern=N` as in --vmodule; raises ValueError."""
    return tuple(_parse_module(item.strip()) for item in text.split(",") if item.strip())


def _parse_module(item: str) -> ModuleLevel:
    pattern, equals, level = (part.strip() for part in item.partition("="))
    if not (pattern and equals and level.isdecimal()):
        raise ValueError(f"{item!r} is not a pattern and a level such as scheduling_queue=4 or kubestow/queue/*=4")
    return ModuleLevel(pattern.removesuffix(".py"), int(level))


class LogOutput:
    """Writes log lines until it is closed."""

    def __init__(
        self,
        options: LogOptions,
        out: TextIO | None = None,
        err: TextIO | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._format = FORMATS[options.format]
        self._err = err or sys.stderr
        self._out = (out or sys.stdout) if options.split_stream else self._err
        self._buffer_size = options.info_buffer_size if options.split_stream else 0
        self._now = now
        self._buffered: list[str] = []
        self._buffered_size = 0
        self._library = _LibraryHandler(self.write)
        self._root_level = logging.getLogger().level

    def open(self) -> None:
        """From now on everything that is logged comes here."""
        logging.getLogger().addHandler(self._library)
        logging.captureWarnings(True)
        self.set_verbosity(self._options.verbosity)

    def close(self) -> None:
        """Write what is left, and be silent from now on."""
        logs.uninstall()
        self.flush()
        logging.captureWarnings(False)
        root = logging.getLogger()
        root.removeHandler(self._library)
        root.setLevel(self._root_level)
        logging.getLogger("kubestow").setLevel(logging.NOTSET)

    def set_verbosity(self, verbosity: int) -> None:
        """Change how much is said while running."""
        logs.install(self.write, verbosity, self._options.modules)
        own = logging.DEBUG if verbosity >= DETAILS else logging.INFO
        libraries = logging.WARNING if verbosity < DETAILS else logging.INFO
        logging.getLogger().setLevel(logging.DEBUG if verbosity >= EVERYTHING else libraries)
        logging.getLogger("kubestow").setLevel(own)

    def write(self, entry: Entry) -> None:
        """Write one entry."""
        line = self._format(entry, self._now())
        if entry.severity != INFO:
            self.flush()
            _put(self._err, line)
        elif self._buffer_size:
            self._buffered.append(line)
            self._buffered_size += len(line)
            if self._buffered_size >= self._buffer_size:
                self.flush()
        else:
            _put(self._out, line)

    def flush(self) -> None:
        """Write what was collected."""
        if self._buffered:
            _put(self._out, "".join(self._buffered))
            self._buffered.clear()
            self._buffered_size = 0


def _put(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        pass  # a reader that has gone away must not stop the scheduler


class _LibraryHandler(logging.Handler):
    """Passes on what was told to Python's own logging."""

    def __init__(self, write: Callable[[Entry], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        values: dict[str, Any] = {"logger": record.name}
        if record.exc_info and error is not None:
            values["stacktrace"] = logging.Formatter().formatException(record.exc_info)
        try:
            message = record.getMessage()
        except Exception as fault:  # arguments that do not fit the format
            message, error = str(record.msg), fault
        self._write(Entry(_severity(record), message, _level(record), record.pathname, record.lineno, error, values))


def _severity(record: logging.LogRecord) -> str:
    if record.levelno >= logging.ERROR:
        return ERROR
    return WARNING if record.levelno >= logging.WARNING else INFO


def _level(record: logging.LogRecord) -> int:
    return 0 if record.levelno >= logging.INFO else DETAILS

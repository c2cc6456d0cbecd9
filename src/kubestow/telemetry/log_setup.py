"""Where log lines go: set up once, by the command, from its flags.

Lines go to standard error. With split streams, news goes to standard output, errors and warnings to standard error;
then news may be collected in a buffer, which is written when it is full, before any error, and when `flush` is called
(as often as --log-flush-frequency says). What libraries log comes out the same way.
"""

import logging
import sys
from typing import TextIO

import msgspec

from kubestow.telemetry import logs
from kubestow.telemetry.log_formats import JsonFormatter, TextFormatter
from kubestow.telemetry.logs import NO_NEWS, ModuleLevel

FORMATS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}

LIBRARIES = 4
"""The verbosity from which on libraries may tell as much as the project's own modules; before, only warnings."""


class LogOptions(msgspec.Struct, frozen=True):
    """The flags about logs."""

    format: str = "text"
    verbosity: int = 0
    modules: tuple[ModuleLevel, ...] = ()
    split_stream: bool = False
    info_buffer_size: int = 0

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"unknown log format {self.format!r}: choose one of {', '.join(sorted(FORMATS))}")
        if self.verbosity < NO_NEWS:
            raise ValueError(f"log verbosity must be {NO_NEWS} (no news) or more, and is {self.verbosity}")


def parse_modules(text: str) -> tuple[ModuleLevel, ...]:
    """Read `pattern=N,pattern=N` as in --vmodule; raises ValueError."""
    return tuple(_parse_module(item.strip()) for item in text.split(",") if item.strip())


def _parse_module(item: str) -> ModuleLevel:
    pattern, equals, level = (part.strip() for part in item.partition("="))
    if not (pattern and equals and level.isdecimal()):
        raise ValueError(f"{item!r} is not a pattern and a level such as scheduling_queue=4 or kubestow/queue/*=4")
    return ModuleLevel(pattern.removesuffix(".py"), int(level))


class LogOutput(logging.Handler):
    """Writes log lines until it is closed."""

    def __init__(self, options: LogOptions, out: TextIO | None = None, err: TextIO | None = None) -> None:
        super().__init__()
        self.setFormatter(FORMATS[options.format]())
        self._options = options
        self._err = err or sys.stderr
        self._out = (out or sys.stdout) if options.split_stream else self._err
        self._buffer_size = options.info_buffer_size if options.split_stream else 0
        self._buffered: list[str] = []
        self._buffered_size = 0
        self._root_level = logging.getLogger().level

    def open(self) -> None:
        """From now on everything that is logged comes here."""
        logging.getLogger().addHandler(self)
        logging.captureWarnings(True)
        self.set_verbosity(self._options.verbosity)

    def close(self) -> None:
        """Write what is left; from now on nothing comes here."""
        self.flush()
        logs.set_verbosity(None)
        logging.captureWarnings(False)
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._root_level)
        super().close()

    def set_verbosity(self, verbosity: int) -> None:
        """Change how much is said while running."""
        logs.set_verbosity(verbosity, self._options.modules)
        told = max(logging.INFO - verbosity, 1) if verbosity >= LIBRARIES else logging.WARNING
        logging.getLogger().setLevel(told)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        line = self.format(record) + "\n"
        if record.levelno >= logging.WARNING:
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

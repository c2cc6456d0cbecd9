"""The output of log lines: set up once, by the command, from its flags.

Lines go to standard error. With split streams, info lines go to standard output, warnings and errors to standard error.
Info lines may then be buffered; the buffer is written when it is full, before each warning or error, and by `flush`
(called at the interval of --log-flush-frequency). The records of libraries are written the same way.
"""

import logging
import sys
from typing import TextIO

import msgspec

from kubestow.telemetry import logs
from kubestow.telemetry.log_formats import JsonFormatter, TextFormatter
from kubestow.telemetry.logs import WARNINGS_ONLY, ModuleLevel

FORMATS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}

_LIBRARY_VERBOSITY = 4
"""The verbosity from which on libraries log as much as the project's own modules; below, only warnings."""


class LogOptions(msgspec.Struct, frozen=True):
    """The values of the log flags."""

    format: str = "text"
    verbosity: int = 0
    modules: tuple[ModuleLevel, ...] = ()
    split_stream: bool = False
    info_buffer_size: int = 0

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"unknown log format {self.format!r}: choose one of {', '.join(sorted(FORMATS))}")
        if self.verbosity < WARNINGS_ONLY:
            raise ValueError(f"log verbosity must be {WARNINGS_ONLY} (warnings only) or more, not {self.verbosity}")


def parse_modules(text: str) -> tuple[ModuleLevel, ...]:
    """Parse `pattern=N,pattern=N` as in --vmodule. Raises ValueError if the text is invalid."""
    return tuple(_parse_module(item.strip()) for item in text.split(",") if item.strip())


def _parse_module(item: str) -> ModuleLevel:
    pattern, equals, level = (part.strip() for part in item.partition("="))
    if not (pattern and equals and level.isdecimal()):
        raise ValueError(f"{item!r} is not PATTERN=LEVEL, such as scheduling_queue=4 or kubestow/scheduler/queue/*=4")
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
        """Start to receive all log records, those of libraries and of the warnings module included."""
        logging.getLogger().addHandler(self)
        logging.captureWarnings(True)
        self.set_verbosity(self._options.verbosity)

    def close(self) -> None:
        """Write the buffered lines and stop to receive records."""
        self.flush()
        logs.set_verbosity(None)
        logging.captureWarnings(False)
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._root_level)
        super().close()

    def set_verbosity(self, verbosity: int) -> None:
        """Change the verbosity while running."""
        logs.set_verbosity(verbosity, self._options.modules)
        level = max(logging.INFO - verbosity, 1) if verbosity >= _LIBRARY_VERBOSITY else logging.WARNING
        logging.getLogger().setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Write or buffer one record."""
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
        """Write the buffered lines."""
        if self._buffered:
            _put(self._out, "".join(self._buffered))
            self._buffered.clear()
            self._buffered_size = 0


def _put(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        pass  # a closed stream must not stop the scheduler

"""Logging for every module, the pure core included: `log = get_logger(__name__)`.

This is Python's own `logging` with values: `log.info("Moved pod", v=3, pod=key)` creates an ordinary record at the
ordinary logger of that name. Verbosity is a level, INFO less v, so -v and --vmodule set the levels of loggers and any
handler can filter by them. In the hottest loops check `log.is_enabled(3)` first, which avoids the call.

Until a command opens an output (`log_setup`) or an embedding program adds handlers of its own, nothing is written: the
core does no I/O, and its tests produce no output.
"""

import logging
import traceback
from collections.abc import Sequence
from fnmatch import fnmatchcase
from logging import ERROR, INFO, WARNING
from typing import Any

import msgspec

from kubestow.telemetry.log_messages import Message

WARNINGS_ONLY = -1
"""The verbosity at which only warnings and errors are logged."""
_DEBUG_VERBOSITY = 10
"""The verbosity whose level is DEBUG."""

for _v in range(1, _DEBUG_VERBOSITY):
    logging.addLevelName(INFO - _v, f"V{_v}")
logging.getLogger("kubestow").addHandler(logging.NullHandler())


class ModuleLevel(msgspec.Struct, frozen=True):
    """A higher verbosity for the modules that a pattern matches.

    The pattern is a glob for the module's own name (`retry`), or with slashes for its path (`kubestow/client/*`).
    """

    pattern: str
    level: int

    def matches(self, name: str) -> bool:
        path = name.replace(".", "/")
        return fnmatchcase(path if "/" in self.pattern else path.rpartition("/")[2], self.pattern)


class Logger:
    """The logger of one module. Values are passed as keyword arguments."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def is_enabled(self, v: int) -> bool:
        """Return whether messages of this verbosity are logged."""
        return self._logger.isEnabledFor(INFO - v)

    def info(self, text: str, *, v: int = 0, err: BaseException | str | None = None, **values: Any) -> None:
        """Log information: v=0 always, 2 changes of state, 3 and 4 details of decisions, 5 and above debugging."""
        if self._logger.isEnabledFor(INFO - v):
            if err is not None:
                # klog writes the cause of an error first; in an info line it is a value like any other.
                values["err"] = str(err) or type(err).__name__
            self._logger.log(INFO - v, Message(text, None, values), stacklevel=2)

    def line(self, text: str, *, v: int = 0) -> None:
        """Log information that klog writes without quotes."""
        self._logger.log(INFO - v, Message(text, None, {}, plain=True), stacklevel=2)

    def warning(self, text: str, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Log a problem that may need action by an operator."""
        self._logger.log(WARNING, Message(text, err, values), stacklevel=2)

    def error(self, text: str, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Log an expected kind of failure."""
        self._logger.log(ERROR, Message(text, err, values), stacklevel=2)

    def unexpected(self, text: str, *, err: BaseException, **values: Any) -> None:
        """Log an unexpected failure, with its stack trace."""
        trace = "".join(traceback.format_exception(err))
        self._logger.log(ERROR, Message(text, err, {**values, "stacktrace": trace}), stacklevel=2)


class _State:
    """The verbosity of the loggers of this process. None leaves the levels to `logging`."""

    def __init__(self) -> None:
        self.verbosity: int | None = None
        self.modules: Sequence[ModuleLevel] = ()
        self.names: set[str] = set()

    def apply(self, name: str) -> None:
        level = logging.NOTSET
        if self.verbosity is not None:
            matching = (module.level for module in self.modules if module.matches(name))
            level = max(INFO - max(self.verbosity, next(matching, WARNINGS_ONLY)), 1)
        logging.getLogger(name).setLevel(level)


_state = _State()


def get_logger(name: str) -> Logger:
    """Return the logger of the module with this name."""
    if name not in _state.names:
        _state.names.add(name)
        _state.apply(name)
    return Logger(logging.getLogger(name))


def set_verbosity(verbosity: int | None, modules: Sequence[ModuleLevel] = ()) -> None:
    """Set the verbosity of all modules, and a higher one for those that a pattern matches; None resets all levels."""
    _state.verbosity, _state.modules = verbosity, modules
    for name in _state.names:
        _state.apply(name)


def verbosity_of(record: logging.LogRecord) -> int:
    """Return the verbosity of a record."""
    return max(INFO - record.levelno, 0)

"""Logging for every module, the pure core included: `log = get_logger(__name__)`.

This is Python's own `logging` with values: `log.info("Moved pod", v=3, pod=key)` makes an ordinary record at the
ordinary logger of that name. Verbosity is a level, INFO less v, so -v and --vmodule set the levels of loggers and any
handler can filter by them. In the hottest loops ask `log.is_enabled(3)` first and spare even the call.

Until a command opens an output (`log_setup`) or a program that embeds this one sets up handlers of its own, nothing is
written anywhere: the core does no I/O, and its tests need not be silenced.
"""

import logging
import traceback
from collections.abc import Sequence
from fnmatch import fnmatchcase
from logging import ERROR, INFO, WARNING
from typing import Any

import msgspec

from kubestow.telemetry.log_messages import Message

NO_NEWS = -1
"""The verbosity at which only warnings and errors are told."""
_MOST_VERBOSE = 10
"""As much as DEBUG."""

for _v in range(1, _MOST_VERBOSE):
    logging.addLevelName(INFO - _v, f"V{_v}")
logging.getLogger("kubestow").addHandler(logging.NullHandler())


class ModuleLevel(msgspec.Struct, frozen=True):
    """More verbosity for the modules that a pattern matches.

    The pattern is a glob for the module's own name (`retry`), or with slashes for all of it (`kubestow/queue/*`).
    """

    pattern: str
    level: int

    def matches(self, name: str) -> bool:
        path = name.replace(".", "/")
        return fnmatchcase(path if "/" in self.pattern else path.rpartition("/")[2], self.pattern)


class Logger:
    """What one module says. Values follow as keyword arguments."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def is_enabled(self, v: int) -> bool:
        """Return whether messages of this verbosity are logged."""
        return self._logger.isEnabledFor(INFO - v)

    def info(self, text: str, *, v: int = 0, err: BaseException | str | None = None, **values: Any) -> None:
        """News: 0 always wanted, 2 changes of state, 3 and 4 decisions in detail, 5 and above for debugging."""
        if self._logger.isEnabledFor(INFO - v):
            if err is not None:
                # klog writes errors first; in news they are values like others.
                values["err"] = str(err) or type(err).__name__
            self._logger.log(INFO - v, Message(text, None, values), stacklevel=2)

    def line(self, text: str, *, v: int = 0) -> None:
        """News that klog writes as they are, without quotes."""
        self._logger.log(INFO - v, Message(text, None, {}, plain=True), stacklevel=2)

    def warning(self, text: str, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Something that somebody may want to do something about."""
        self._logger.log(WARNING, Message(text, err, values), stacklevel=2)

    def error(self, text: str, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Something went wrong that was foreseen."""
        self._logger.log(ERROR, Message(text, err, values), stacklevel=2)

    def unexpected(self, text: str, *, err: BaseException, **values: Any) -> None:
        """Something went wrong that nobody foresaw: tells where, too."""
        trace = "".join(traceback.format_exception(err))
        self._logger.log(ERROR, Message(text, err, {**values, "stacktrace": trace}), stacklevel=2)


class _State:
    """How much the loggers of this process tell. None leaves that to `logging`."""

    def __init__(self) -> None:
        self.verbosity: int | None = None
        self.modules: Sequence[ModuleLevel] = ()
        self.names: set[str] = set()

    def apply(self, name: str) -> None:
        level = logging.NOTSET
        if self.verbosity is not None:
            matching = (module.level for module in self.modules if module.matches(name))
            level = max(INFO - max(self.verbosity, next(matching, NO_NEWS)), 1)
        logging.getLogger(name).setLevel(level)


_state = _State()


def get_logger(name: str) -> Logger:
    """The logger of the module of this name."""
    if name not in _state.names:
        _state.names.add(name)
        _state.apply(name)
    return Logger(logging.getLogger(name))


def set_verbosity(verbosity: int | None, modules: Sequence[ModuleLevel] = ()) -> None:
    """From now on all modules tell so much, and those that a pattern matches more; None undoes it."""
    _state.verbosity, _state.modules = verbosity, modules
    for name in _state.names:
        _state.apply(name)


def verbosity_of(record: logging.LogRecord) -> int:
    """How verbose a record is."""
    return max(INFO - record.levelno, 0)

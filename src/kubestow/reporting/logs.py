"""Logging for every module, the pure core included: `log = get_logger(__name__)`.

A logger knows how much it may say, a number that the command line sets (-v, --vmodule). `log.info("...", v=3, pod=key)`
compares the two and is done if there is nothing to say; in the hottest loops, ask `log.verbosity >= 3` first and spare
even the call. What is said goes to one sink for the whole process. Until the command installs one (`log_setup`),
nothing is written anywhere: the core does no I/O of its own, and its tests need not be silenced.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

INFO, WARNING, ERROR = "I", "W", "E"
SILENT = -1
"""The verbosity at which not even the most important news is told."""


class Entry(NamedTuple):
    """Something said, and where."""

    severity: str
    message: str
    v: int
    path: str
    line: int
    error: BaseException | str | None
    values: dict[str, Any]


Sink = Callable[[Entry], None]


class ModuleLevel(NamedTuple):
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

    __slots__ = ("name", "verbosity")

    def __init__(self, name: str, verbosity: int) -> None:
        self.name = name
        self.verbosity = verbosity

    def info(self, message: str, *, v: int = 0, **values: Any) -> None:
        """News: 0 always wanted, 2 changes of state, 3 and 4 decisions in detail, 5 and above for debugging."""
        if v <= self.verbosity:
            _say(INFO, message, v, None, values)

    def warning(self, message: str, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Something that somebody may want to do something about."""
        if self.verbosity != SILENT:
            _say(WARNING, message, 0, err, values)

    def error(self, message: str, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Something went wrong that was foreseen."""
        if self.verbosity != SILENT:
            _say(ERROR, message, 0, err, values)

    def unexpected(self, message: str, *, err: BaseException, **values: Any) -> None:
        """Something went wrong that nobody foresaw: tells where, too."""
        if self.verbosity != SILENT:
            _say(ERROR, message, 0, err, {**values, "stacktrace": "".join(traceback.format_exception(err))})


class _State:
    """How the process logs."""

    def __init__(self) -> None:
        self.sink: Sink = _drop
        self.verbosity = SILENT
        self.modules: Sequence[ModuleLevel] = ()
        self.loggers: dict[str, Logger] = {}

    def verbosity_of(self, name: str) -> int:
        matching = (module.level for module in self.modules if module.matches(name))
        return max(self.verbosity, next(matching, SILENT))


def _drop(_: Entry) -> None:
    pass


_state = _State()


def get_logger(name: str) -> Logger:
    """The logger of the module of this name."""
    logger = _state.loggers.get(name)
    if logger is None:
        logger = _state.loggers[name] = Logger(name, _state.verbosity_of(name))
    return logger


def install(sink: Sink, verbosity: int, modules: Sequence[ModuleLevel] = ()) -> None:
    """From now on everything goes to this sink."""
    _state.sink, _state.verbosity, _state.modules = sink, verbosity, modules
    for logger in _state.loggers.values():
        logger.verbosity = _state.verbosity_of(logger.name)


def uninstall() -> None:
    """Be silent again."""
    install(_drop, SILENT)


def _say(severity: str, message: str, v: int, error: BaseException | str | None, values: dict[str, Any]) -> None:
    caller = sys._getframe(2)  # noqa: SLF001 - the only cheap way to the module that called the logger
    _state.sink(Entry(severity, message, v, caller.f_code.co_filename, caller.f_lineno, error, values))

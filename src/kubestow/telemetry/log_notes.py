"""Warnings as notes, for a command that is not about logs: the cause alone, and the same words once a minute."""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubestow.clock import Clock
from kubestow.telemetry.log_messages import Message

_REMINDER_SECONDS = 60.0


class _Notes(logging.Handler):
    def __init__(self, note: Callable[[str], None], clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self._note = note
        self._clock = clock
        self._told: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg
        said = message.shown_error() if isinstance(message, Message) and message.err else record.getMessage()
        now = self._clock.now()
        if now - self._told.get(said, -math.inf) >= _REMINDER_SECONDS:
            recent = {words: time for words, time in self._told.items() if now - time < _REMINDER_SECONDS}
            self._told = {**recent, said: now}
            self._note(said)


@contextmanager
def noting(package: str, note: Callable[[str], None], clock: Clock) -> Iterator[None]:
    """Meanwhile, what the modules of a package warn of is noted."""
    logger, notes = logging.getLogger(package), _Notes(note, clock)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)

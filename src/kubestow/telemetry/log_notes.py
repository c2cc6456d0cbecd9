"""Warnings as notes, for commands without log output: only the cause, and the same text at most once a minute."""

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
        self._noted: dict[str, float] = {}
        """When each recent text was last passed on."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg
        text = message.redacted_error() if isinstance(message, Message) and message.err else record.getMessage()
        now = self._clock.now()
        if now - self._noted.get(text, -math.inf) >= _REMINDER_SECONDS:
            recent = {noted: time for noted, time in self._noted.items() if now - time < _REMINDER_SECONDS}
            self._noted = {**recent, text: now}
            self._note(text)


@contextmanager
def forward_warnings(package: str, note: Callable[[str], None], clock: Clock) -> Iterator[None]:
    """Call `note` for the warnings and errors of a package until the context ends."""
    logger, notes = logging.getLogger(package), _Notes(note, clock)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)

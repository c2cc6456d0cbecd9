"""Stores signals that arrive while the process is loading, and would otherwise terminate it.

They are handled once the scheduler exists. A small module of its own: it is loaded before anything else.
"""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

NUMBERS = (signal.SIGHUP, signal.SIGUSR2)


class EarlySignals:
    """A context manager that stores signals until other handlers are installed."""

    def __init__(self) -> None:
        self.received: set[int] = set()
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._store) for number in NUMBERS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _store(self, number: int, _: FrameType | None) -> None:
        self.received.add(number)

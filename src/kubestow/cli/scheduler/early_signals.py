"""Signals that ask for something while the process is still loading, and would end it.

They are remembered, and answered once somebody is there who can.
"""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

NUMBERS = (signal.SIGHUP, signal.SIGUSR2)


class EarlySignals:
    """Remembers signals from when it is entered until others handle them."""

    def __init__(self) -> None:
        self.came: set[int] = set()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._remember) for number in NUMBERS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _remember(self, number: int, _: FrameType | None) -> None:
        self.came.add(number)

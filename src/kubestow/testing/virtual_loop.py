"""An asyncio event loop in virtual time: where it would sleep until the next timer, its clock jumps there.

Time is counted in whole nanoseconds, so that thousands of small steps add up exactly. Nothing is slept, so an hour
costs what happens in it. The loop is driven from outside: `run_for` and `run_until` come back, and leave everything
that is under way where it is. There must be nothing to wait for but timers: no sockets, no threads.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START = 1_767_225_600
"""When virtual time begins, in seconds since the Unix epoch: 2026-01-01T00:00:00Z."""
_NANO = 10**9


class StuckError(RuntimeError):
    """Nothing is left to do, and still what was waited for has not happened."""


class VirtualClock:
    """The loop's time, counted from the Unix epoch."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def now(self) -> float:
        return (START * _NANO + self._loop.nanoseconds) / _NANO


class VirtualLoop(asyncio.SelectorEventLoop):
    """Use it like any event loop, or drive it with `run_for` and `run_until`."""

    def __init__(self) -> None:
        self.nanoseconds = 0
        """How much time has passed."""
        self._deadline: int | None = None
        self._is_enough: Callable[[], bool] | None = None
        super().__init__(_JumpingSelector(self._jump))
        self.clock = VirtualClock(self)

    def time(self) -> float:
        return self.nanoseconds / _NANO

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        self._drive(self.nanoseconds + round(seconds * _NANO), None)

    def run_until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Run until a condition holds when nothing more is to be done at that moment; False if it did not in time."""
        self._drive(self.nanoseconds + round(limit * _NANO), condition)
        return condition()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self.run_until_complete(work)

    def _drive(self, deadline: int, is_enough: Callable[[], bool] | None) -> None:
        self._deadline, self._is_enough = deadline, is_enough
        try:
            self.run_forever()
        finally:
            self._deadline = self._is_enough = None

    def _jump(self, timeout: float | None) -> None:
        """Nothing can be done now: go on to the next timer, or stop before it."""
        if self._is_enough is not None and self._is_enough():
            self.stop()
            return
        if timeout is None:
            if self._deadline is None:
                raise StuckError("nothing is left to do, and no timer is set: what is being waited for cannot happen")
            target = None
        else:
            target = self.nanoseconds + max(round(timeout * _NANO), 1)
        if self._deadline is not None and (target is None or target > self._deadline):
            self.nanoseconds = self._deadline
            self.stop()
        elif target is not None:
            self.nanoseconds = target


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, jump: Callable[[float | None], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0.0:
            return []
        ready = super().select(0)
        if not ready:
            self._jump(timeout)
        return ready

"""An asyncio event loop in virtual time: where it would sleep until the next timer, its clock jumps there.

Time is counted in whole nanoseconds, so that thousands of small steps add up exactly. Nothing is slept, so an hour
costs what happens in it. The loop is driven from outside: `run_for` and `run_until` come back, and leave everything
that is under way where it is. There must be nothing to wait for but timers: no sockets, no threads. So it has no
selector and its timers are plain tuples, which makes a turn cost a third of what it costs asyncio's own loops.
"""

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
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


class VirtualLoop(asyncio.BaseEventLoop):
    """Use it like any event loop, or drive it with `run_for`, `run_until` and `step`."""

    def __init__(self) -> None:
        super().__init__()
        self.nanoseconds = 0
        """How much time has passed."""
        self.clock = VirtualClock(self)
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._order = itertools.count()
        self._deadline: int | None = None
        self._is_enough: Callable[[], bool] | None = None

    def time(self) -> float:
        return self.nanoseconds / _NANO

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        self._drive(self.nanoseconds + round(seconds * _NANO), None)

    def run_until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Run until a condition holds when nothing more is to be done at that moment; False if it did not in time."""
        self._drive(self.nanoseconds + round(limit * _NANO), condition)
        return condition()

    def step(self) -> bool:
        """Go on to the next moment at which something is due, and do it; False if nothing ever will be."""
        moments = iter((False, True))
        self._is_enough = lambda: next(moments)
        try:
            self.run_forever()
        except StuckError:
            return False
        finally:
            self._is_enough = None
        return True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        result: T = self.run_until_complete(work)
        return result

    def _drive(self, deadline: int, is_enough: Callable[[], bool] | None) -> None:
        self._deadline, self._is_enough = deadline, is_enough
        try:
            self.run_forever()
        finally:
            self._deadline = self._is_enough = None

    def run_forever(self) -> None:
        """As in any loop; and also inside another one that runs, in a notebook or in another simulation."""
        with _no_other_loop():
            super().run_forever()

    def run_until_complete(self, future: Any) -> Any:
        """The same."""
        with _no_other_loop():
            return super().run_until_complete(future)

    def call_at(  # type: ignore[override]  # typeshed's has a type variable for the arguments
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        due = round(when * _NANO)
        if due <= self.nanoseconds and when > self.time():
            # It would ring too early by a rounding error, and whoever waits for `when` would set it again and again.
            due = self.nanoseconds + 1
        heapq.heappush(self._timers, (due, next(self._order), handle))
        return handle

    def _run_once(self) -> None:
        """One turn: what BaseEventLoop does with a selector, done with nothing to wait for."""
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        timers = self._timers
        if not ready:
            while timers and timers[0][2].cancelled():
                heapq.heappop(timers)
            if not timers or timers[0][0] > self.nanoseconds:
                self._jump(timers[0][0] if timers else None)
        while timers and timers[0][0] <= self.nanoseconds:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001 the loop is who runs them

    def _jump(self, target: int | None) -> None:
        """Nothing can be done now: go on to the next timer, or stop before it."""
        if self._is_enough is not None and self._is_enough():
            self.stop()
        elif target is None and self._deadline is None:
            raise StuckError("nothing is left to do, and no timer is set: what is being waited for cannot happen")
        elif self._deadline is not None and (target is None or target > self._deadline):
            self.nanoseconds = self._deadline
            self.stop()
        elif target is not None:
            self.nanoseconds = target

    def _process_events(self, event_list: Any) -> None:
        """BaseEventLoop wants to know what becomes of sockets; there are none."""


@contextmanager
def _no_other_loop() -> Iterator[None]:
    outer = asyncio._get_running_loop()  # noqa: SLF001 meant for those who write loops
    asyncio._set_running_loop(None)  # noqa: SLF001
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001

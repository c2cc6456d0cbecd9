"""An asyncio event loop in virtual time: instead of sleeping until the next timer, it advances its clock.

Time is counted in whole nanoseconds, so that thousands of small steps add up exactly. As nothing sleeps, an hour takes
as long as the work in it. The loop is driven from outside: `run_for` and `run_until` return and leave pending work as
it is. Tasks may only wait for timers, not for sockets or threads. So the loop is a queue of ready callbacks and a heap
of timers, which costs half as much as asyncio's own loops.
"""

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")

START = 1_767_225_600
"""Default start of virtual time, in seconds since the Unix epoch: 2026-01-01T00:00:00Z."""
_NANO = 10**9
_ORDER_BITS = 48
"""A timer is an integer: its time, followed by this many bits for its order among timers of the same time."""


class StuckError(RuntimeError):
    """The condition that was waited for cannot become true, or did not in time."""


class VirtualClock:
    """The loop's time, as seconds since the Unix epoch."""

    seconds = float(START)

    def now(self) -> float:
        return self.seconds


class Handle(Struct, eq=False):
    """A scheduled callback; without a context it is called in the context that drives the loop."""

    callback: Callable[..., object] | None
    args: Any
    context: contextvars.Context | None

    def cancel(self) -> None:
        self.callback = self.args = None

    def cancelled(self) -> bool:
        return self.callback is None


# mypy: disable-error-code="override"
# asyncio's own handles, which the type annotations require, cost more than most callbacks.
class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that can also be driven with `run_for`, `run_until` and `step`."""

    def __init__(self, start: int = START) -> None:
        """`start` is the initial time of the clock, in seconds since the Unix epoch."""
        self._is_running = self._is_stopping = False
        super().__init__()
        self.clock = VirtualClock()
        self._start = start * _NANO
        self.set_time(0)
        self._soon: deque[Handle] = deque()
        self._timers: list[int] = []
        self._handles: dict[int, Handle] = {}
        """By timer."""
        self._order = itertools.count()
        self._deadline: int | None = None
        self._is_done: Callable[[], bool] | None = None

    def set_time(self, nanoseconds: int) -> None:
        """Set the time that has passed since the start."""
        self.nanoseconds, self._seconds = nanoseconds, nanoseconds / _NANO
        self.clock.seconds = (self._start + nanoseconds) / _NANO

    def time(self) -> float:
        return self._seconds

    # Driving the loop

    def run_for(self, seconds: float) -> None:
        """Let the given time pass."""
        self._drive(self.nanoseconds + round(seconds * _NANO), None)

    def run_until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Run until a condition holds once all work of a moment is done; return False if it does not hold in time."""
        self._drive(self.nanoseconds + round(limit * _NANO), condition)
        return condition()

    def step(self) -> bool:
        """Advance to the next moment with pending work and run it; return False if there is none."""
        moments = iter((False, True))
        self._is_done = lambda: next(moments)
        try:
            self.run_forever()
        except StuckError:
            return False
        finally:
            self._is_done = None
        return True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        result: T = self.run_until_complete(work)
        return result

    def _drive(self, deadline: int, is_done: Callable[[], bool] | None) -> None:
        self._deadline, self._is_done = deadline, is_done
        try:
            self.run_forever()
        finally:
            self._deadline = self._is_done = None

    def run_forever(self) -> None:
        """Run until stopped; works within another running loop, too: in a notebook or in another simulation."""
        self._require_open()
        if self._is_running:
            raise RuntimeError("this event loop is already running")
        outer = asyncio._get_running_loop()  # noqa: SLF001 intended for event loop implementations
        asyncio._set_running_loop(self)  # noqa: SLF001
        self._is_running = True
        try:
            self._run()
        finally:
            self._is_running = self._is_stopping = False
            asyncio._set_running_loop(outer)  # noqa: SLF001

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        task.add_done_callback(self._stop_after)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._stop_after)
        if not task.done():
            raise RuntimeError("the event loop was stopped before the coroutine was done")
        return task.result()

    def _stop_after(self, _task: asyncio.Future[Any]) -> None:
        self.stop()

    def _run(self) -> None:
        """Run ready callbacks and due timers; callbacks that they add wait for the next turn."""
        ready, timers, handles, pop = self._soon, self._timers, self._handles, heapq.heappop
        while True:
            if not ready:
                while timers and handles[timers[0]].callback is None:
                    del handles[pop(timers)]
                due = timers[0] >> _ORDER_BITS if timers else None
                if due is None or due > self.nanoseconds:
                    self._advance(due)
            later = (self.nanoseconds + 1) << _ORDER_BITS
            while timers and timers[0] < later:
                ready.append(handles.pop(pop(timers)))
            for _ in range(len(ready)):
                handle = ready.popleft()
                callback, context = handle.callback, handle.context
                if callback is not None:
                    try:
                        if context is None:
                            callback(*handle.args)
                        else:
                            context.run(callback, *handle.args)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:
                        message = f"{callback!r} raised {type(error).__name__}"
                        self.call_exception_handler({"message": message, "exception": error})
            if self._is_stopping:
                return

    def _advance(self, target: int | None) -> None:
        """Advance to the next timer, or stop before it."""
        if self._is_done is not None and self._is_done():
            self.stop()
        elif target is None and self._deadline is None:
            raise StuckError("nothing is left to do and no timer is set: the awaited condition cannot become true")
        elif self._deadline is not None and (target is None or target > self._deadline):
            self.set_time(self._deadline)
            self.stop()
        elif target is not None:
            self.set_time(target)

    # Methods that tasks, futures and timeouts call

    def create_task(
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        self._require_open()
        handle = Handle(callback, args, context)
        self._soon.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        return self._call_at(self.nanoseconds + round(delay * _NANO), Handle(callback, args, context))

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        due = round(when * _NANO)
        if due <= self.nanoseconds and when > self._seconds:
            # Rounding would make it fire too early, and callers that wait for `when` would set it again and again.
            due = self.nanoseconds + 1
        return self._call_at(due, Handle(callback, args, context))

    def _call_at(self, due: int, handle: Handle) -> Handle:
        self._require_open()
        timer = due << _ORDER_BITS | next(self._order)
        self._handles[timer] = handle
        heapq.heappush(self._timers, timer)
        return handle

    def is_running(self) -> bool:
        return self._is_running

    def stop(self) -> None:
        self._is_stopping = True

    def close(self) -> None:
        super().close()
        self._soon.clear()
        self._timers.clear()
        self._handles.clear()

    def _require_open(self) -> None:
        if self._closed:  # type: ignore[attr-defined]
            raise RuntimeError("the event loop is closed")

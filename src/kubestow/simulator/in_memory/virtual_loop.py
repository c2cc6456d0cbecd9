"""An asyncio event loop in virtual time: where it would sleep until the next timer, its clock jumps there.

Time is counted in whole nanoseconds, so that thousands of small steps add up exactly. Nothing is slept, so an hour
costs what happens in it. The loop is driven from outside: `run_for` and `run_until` come back, and leave everything
that is under way where it is. There must be nothing to wait for but timers: no sockets, no threads. So a turn is a
queue of what is ready and a heap of timers, which costs half of what it costs asyncio's own loops.
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
"""When virtual time begins unless it is said otherwise, in seconds since the Unix epoch: 2026-01-01T00:00:00Z."""
_NANO = 10**9
_ORDER_BITS = 48
"""A timer is a number: its time, and in so many bits its place among those of the same time."""


class StuckError(RuntimeError):
    """Nothing is left to do, and still what was waited for has not happened."""


class VirtualClock:
    """The loop's time, counted from the Unix epoch."""

    seconds = float(START)

    def now(self) -> float:
        return self.seconds


class Handle(Struct, eq=False):
    """A callback that waits for its turn; without a context of its own it is called in the one that drives the loop."""

    callback: Callable[..., object] | None
    args: Any
    context: contextvars.Context | None

    def cancel(self) -> None:
        """It is not called."""
        self.callback = self.args = None

    def cancelled(self) -> bool:
        """Whether it is not."""
        return self.callback is None


# mypy: disable-error-code="override"
# asyncio's own handles, which the types ask for, cost more than most of what they call.
class VirtualLoop(asyncio.BaseEventLoop):
    """Use it like any event loop, or drive it with `run_for`, `run_until` and `step`."""

    def __init__(self, start: int = START) -> None:
        """`start` is what the clock shows at first."""
        self._is_running = self._is_stopping = False
        super().__init__()
        self.clock = VirtualClock()
        self._start = start * _NANO
        self.set_time(0)
        self._soon: deque[Handle] = deque()
        self._timers: list[int] = []
        self._set: dict[int, Handle] = {}
        """By timer."""
        self._order = itertools.count()
        self._deadline: int | None = None
        self._is_enough: Callable[[], bool] | None = None

    def set_time(self, nanoseconds: int) -> None:
        """So much time has passed."""
        self.nanoseconds, self._seconds = nanoseconds, nanoseconds / _NANO
        self.clock.seconds = (self._start + nanoseconds) / _NANO

    def time(self) -> float:
        return self._seconds

    # Driving it

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
        self._demand_open()
        if self._is_running:
            raise RuntimeError("this event loop runs already")
        outer = asyncio._get_running_loop()  # noqa: SLF001 meant for those who write loops
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
            raise RuntimeError("the event loop was stopped before what it ran was done")
        return task.result()

    def _stop_after(self, _task: asyncio.Future[Any]) -> None:
        self.stop()

    def _run(self) -> None:
        """Turn by turn: what is ready, and the timers that are due; new ones have to wait for the next turn."""
        ready, timers, handles, pop = self._soon, self._timers, self._set, heapq.heappop
        while True:
            if not ready:
                while timers and handles[timers[0]].callback is None:
                    del handles[pop(timers)]
                due = timers[0] >> _ORDER_BITS if timers else None
                if due is None or due > self.nanoseconds:
                    self._jump(due)
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

    def _jump(self, target: int | None) -> None:
        """Nothing can be done now: go on to the next timer, or stop before it."""
        if self._is_enough is not None and self._is_enough():
            self.stop()
        elif target is None and self._deadline is None:
            raise StuckError("nothing is left to do, and no timer is set: what is being waited for cannot happen")
        elif self._deadline is not None and (target is None or target > self._deadline):
            self.set_time(self._deadline)
            self.stop()
        elif target is not None:
            self.set_time(target)

    # What tasks, futures and timeouts ask of a loop

    def create_task(
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        self._demand_open()
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
            # It would ring too early by a rounding error, and whoever waits for `when` would set it again and again.
            due = self.nanoseconds + 1
        return self._call_at(due, Handle(callback, args, context))

    def _call_at(self, due: int, handle: Handle) -> Handle:
        self._demand_open()
        timer = due << _ORDER_BITS | next(self._order)
        self._set[timer] = handle
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
        self._set.clear()

    def _demand_open(self) -> None:
        if self._closed:  # type: ignore[attr-defined]
            raise RuntimeError("the event loop is closed")

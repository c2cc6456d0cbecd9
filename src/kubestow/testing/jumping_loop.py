"""An event loop with virtual time and real sockets: when it only waits for a timer, the wait is skipped.

Both ends of every connection must be in this loop. If no socket is ready for a short real time, only a timer can be
next, and the clock jumps to it; this real time grows with the distance to the timer. The clock advances by a fixed
amount per turn of the loop, so that the speed of the machine has no effect. Threads are waited for in real time.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

_TURN = 1e-5
"""Virtual seconds per turn of the loop."""
_SHORTEST_SILENCE, _LONGEST_SILENCE = 0.002, 0.05
_SILENCE = 0.002
"""The fraction of a wait that must pass in real time, within these bounds, before the wait is skipped."""
_STUCK_SECONDS = 60.0

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        self.threads = 0
        """Number of running executor calls."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.skipped += _TURN
        if timeout is None:
            ready = super().select(_STUCK_SECONDS)
            if not ready:
                raise RuntimeError(f"event loop is stuck: no timer, and no socket ready for {_STUCK_SECONDS:g} seconds")
            return ready
        silence = min(max(timeout * _SILENCE, _SHORTEST_SILENCE), _LONGEST_SILENCE)
        ready = super().select(timeout if self.threads else min(timeout, silence))
        if not ready and timeout > 0:
            self.skipped += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that skips waits; `time()` is virtual."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.skipped

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        self._jumping.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._end_thread)
        return future

    def _end_thread(self, _: asyncio.Future[Any]) -> None:
        self._jumping.threads -= 1


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)

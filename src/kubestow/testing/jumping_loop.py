"""An event loop whose clock jumps: when nothing is left to do but wait, the wait is skipped.

Sockets stay real. Both ends of every connection live in this loop, so when no socket has anything to say for a moment,
only a timer can; the further it is away, the longer that moment. The clock goes by what is done and not by the time
that it takes: a machine that is slow, or stands still for a while, changes nothing. Only threads are waited for in real
time.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

_TURN = 1e-5
"""Seconds that a turn of the loop takes."""
_SHORTEST_SILENCE, _LONGEST_SILENCE = 0.002, 0.05
_SILENCE = 0.002
"""How much of a wait has to pass in real time, within these bounds, before it is skipped."""
_STUCK = 60.0

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0
        self.threads = 0
        """Those that somebody waits for."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.skipped += _TURN
        if timeout is None:
            ready = super().select(_STUCK)
            if not ready:
                raise RuntimeError("nothing to do and nothing to wait for: the test is stuck")
            return ready
        silence = min(max(timeout * _SILENCE, _SHORTEST_SILENCE), _LONGEST_SILENCE)
        ready = super().select(timeout if self.threads else min(timeout, silence))
        if not ready and timeout > 0:
            self.skipped += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
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
    """Run something to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)

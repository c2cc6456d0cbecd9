"""An event loop whose clock jumps: when nothing is left to do but wait, the wait is skipped.

Sockets stay real. Both ends of every connection live in this loop, so when no socket has anything to say for a moment,
only a timer can.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_GRACE = 0.002
_STUCK = 10.0

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(_STUCK)
            if not ready:
                raise RuntimeError("nothing to do and nothing to wait for: the test is stuck")
            return ready
        if timeout <= _GRACE:
            return super().select(timeout)
        ready = super().select(_GRACE)
        if not ready:
            self.skipped += timeout - _GRACE
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.skipped


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run something to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)

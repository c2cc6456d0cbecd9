"""Keeps the cluster as it is while a cycle waits for an extender: what changes it is held back, in order."""

from collections import deque
from collections.abc import Callable
from typing import Any

from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


class Gate:
    """What changes the state that cycles look at asks here first."""

    def __init__(self) -> None:
        self.is_closed = False
        """Whether a change must wait."""
        self._held: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()

    def hold(self, change: Callable[..., None], *args: Any) -> None:
        """Have a change made when the gate opens."""
        self._held.append((change, args))

    def close(self) -> None:
        """From now on changes wait."""
        self.is_closed = True

    def open(self) -> None:
        """Make the changes that waited, in the order they came. One that fails does not keep the others back."""
        self.is_closed = False
        while self._held:
            change, args = self._held.popleft()
            try:
                change(*args)
            except Exception as error:
                log.unexpected("A change that was held back could not be made", err=error)

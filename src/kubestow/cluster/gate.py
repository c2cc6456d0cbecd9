"""Keeps the cluster as it is while a cycle waits for an extender: what changes it is held back, in order."""

from collections import deque
from collections.abc import Callable
from typing import Any

from kubestow.reporting.logs import get_logger

log = get_logger(__name__)


class Gate:
    """What changes the state that cycles look at asks here first."""

    def __init__(self) -> None:
        self._is_closed = False
        self._held: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()

    def holds(self, change: Callable[..., None], *args: Any) -> bool:
        """Whether a change must wait; it is then made when the gate opens."""
        if self._is_closed:
            self._held.append((change, args))
        return self._is_closed

    def close(self) -> None:
        """From now on changes wait."""
        self._is_closed = True

    def open(self) -> None:
        """Make the changes that waited, in the order they came. One that fails does not keep the others back."""
        self._is_closed = False
        while self._held:
            change, args = self._held.popleft()
            try:
                change(*args)
            except Exception as error:
                log.unexpected("A change that was held back could not be made", err=error)

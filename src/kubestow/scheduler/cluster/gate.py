"""Defers changes of the cluster while a cycle waits for an extender, and applies them in order afterwards."""

from collections import deque
from collections.abc import Callable
from typing import Any

from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


class Gate:
    """Checked before every change of state that cycles read."""

    def __init__(self) -> None:
        self.is_closed = False
        """Whether changes must be deferred."""
        self._held: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def defer(self, change: Callable[..., object], *args: Any) -> None:
        """Defer a change until the gate opens."""
        self._held.append((change, args))

    def close(self) -> None:
        """Defer changes from now on."""
        self.is_closed = True

    def open(self) -> None:
        """Apply the deferred changes, in order of arrival. One that fails does not stop the others."""
        self.is_closed = False
        while self._held:
            change, args = self._held.popleft()
            try:
                change(*args)
            except Exception as error:
                log.unexpected("Deferred change failed", err=error)

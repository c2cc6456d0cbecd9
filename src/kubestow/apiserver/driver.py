"""Runs the queue of controllers in real time: one timer, and short time slices between which requests are served."""

import asyncio

from kubestow.apiserver.controllers.queue import Controllers
from kubestow.clock import Clock

_SLICE_SECONDS = 0.004


class Driver:
    """Reconciles keys when they are due, on the running event loop."""

    def __init__(self, controllers: Controllers, clock: Clock) -> None:
        self._controllers = controllers
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        controllers.on_scheduled = self._set_timer
        self._run()

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._closed:
            self._timer = self._loop.call_later(max(0.0, at - self._clock.now()), self._run)

    def _run(self) -> None:
        end = self._loop.time() + _SLICE_SECONDS
        due = self._controllers.next_due()
        while due is not None and due <= self._clock.now() and self._loop.time() < end:
            self._controllers.reconcile_next()
            due = self._controllers.next_due()
        if due is not None:
            self._set_timer(due)

    def close(self) -> None:
        """Stop all reconciliation."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._controllers.close()

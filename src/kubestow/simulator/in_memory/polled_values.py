"""The values that plugins poll, in virtual time: given ones, else those that the plugins simulate.

There are no sockets in virtual time, so `fetch` is not called. Without either, a value is stale.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from kubestow.scheduler.background import Background
from kubestow.scheduler.framework.polling import PolledValue


class PolledValueError(ValueError):
    """A given value is not what the function of a plugin returns; the message names it."""


class PolledValues:
    """Answers for the polls of one scheduler."""

    def __init__(self, given: Mapping[str, Sequence[tuple[float, Any]]] | None = None) -> None:
        """`given` are values with the times of the loop from which they apply, in order.

        They are found by the name of a plugin, or of a plugin and its function, as in `TargetLoad.fetch`.
        """
        self.given = dict(given or {})
        self.wait_for_nodes: Callable[[float], Any] | None = None
        """Waits until there are nodes, at most for some seconds."""

    def check(self, background: Background | None) -> None:
        """Raise PolledValueError unless each given value fits the plugins that poll it."""
        for polled in () if background is None else background.polled:
            for _, value in self._of(polled) or ():
                answer = _decoded(polled, value)
                if isinstance(answer, ValueError) and answer is not value:
                    raise PolledValueError(f"polled value: {answer}")

    def _of(self, polled: PolledValue[Any]) -> Sequence[tuple[float, Any]] | None:
        return self.given.get(polled.name, self.given.get(polled.plugin))

    async def answers(self, polled: PolledValue[Any]) -> AsyncIterator[Any]:
        """Yield the given values at their times, or a simulated one at each interval."""
        loop = asyncio.get_running_loop()
        values = self._of(polled)
        if values is not None:
            # Of those that are past, as in a fork, only the latest matters.
            past = [value for due, value in values if due <= loop.time()]
            for value in past[-1:]:
                yield _decoded(polled, value)
            for due, value in values[len(past) :]:
                await asyncio.sleep(due - loop.time())
                yield _decoded(polled, value)
            return
        if polled.simulate is None:
            return
        if self.wait_for_nodes is not None:
            # At the start the cluster is still being delivered.
            await self.wait_for_nodes(polled.interval)
        while True:
            try:
                yield polled.simulate()
            except Exception as error:
                yield error
            await asyncio.sleep(polled.interval)

    def give(self, background: Background | None, name: str, value: Any, now: float) -> None:
        """Replace a value from now on; an Exception is a failure. Raises LookupError if no plugin polls it."""
        found = [] if background is None else [one for one in background.polled if name in (one.name, one.plugin)]
        if background is None or not found:
            raise LookupError(f"no plugin polls {name}")
        self.given[name] = [(now, value)]
        for polled in found:
            background.give(polled, _decoded(polled, value))


def _decoded(polled: PolledValue[Any], value: Any) -> Any:
    if isinstance(value, Exception):
        return value
    try:
        return polled.decode(value)
    except ValueError as error:
        return error

"""Answers that are asked for far away, remembered for a while."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_REMEMBERED = 4096


class Remembered(Generic[K, V]):
    """Answers by question; `seconds` says how long each may be used. The same question is asked once at a time."""

    def __init__(self, ask: Callable[[K], Awaitable[V]], seconds: Callable[[V], float]) -> None:
        self._ask = ask
        self._seconds = seconds
        self._answers: dict[K, tuple[V, float]] = {}
        self._asking: dict[K, asyncio.Task[V]] = {}

    async def get(self, question: K) -> V:
        """The answer; what asking raises is raised and not remembered."""
        known = self._answers.get(question)
        if known is not None:
            answer, until = known
            if asyncio.get_running_loop().time() < until:
                return answer
            del self._answers[question]
        asking = self._asking.get(question)
        if asking is None:
            asking = self._asking[question] = asyncio.ensure_future(self._fetch(question))
            asking.add_done_callback(lambda _: self._asking.pop(question))
        # One who gives up waiting must not take the answer from the others.
        return await asyncio.shield(asking)

    async def _fetch(self, question: K) -> V:
        answer = await self._ask(question)
        seconds = self._seconds(answer)
        if seconds > 0:
            while len(self._answers) >= MOST_REMEMBERED:
                del self._answers[next(iter(self._answers))]
            self._answers[question] = (answer, asyncio.get_running_loop().time() + seconds)
        return answer

"""Lets coroutines wait until a condition on the cluster is true."""

import asyncio
from collections.abc import Callable


class Conditions:
    """The conditions that coroutines wait for; they are evaluated whenever an object changes."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}

    def evaluate(self) -> None:
        """Evaluate all conditions; to be called after each change of an object."""
        if not self._waiting:
            return
        for future, condition in list(self._waiting.items()):
            if not future.done():
                try:
                    if condition():
                        future.set_result(None)
                except Exception as error:
                    future.set_exception(error)

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Return whether the condition became true within the timeout; an exception of the condition is raised."""
        if condition():
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            del self._waiting[future]
        return True

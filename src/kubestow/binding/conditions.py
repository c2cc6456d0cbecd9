"""Waiting until something is true of the cluster."""

import asyncio
from collections.abc import Callable


class Conditions:
    """Conditions that somebody waits for, looked at again whenever an object changes."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}

    def changed(self) -> None:
        """An object has changed."""
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
        """Whether the condition came true in time; what it raises is raised here."""
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

"""The virtual time loop: waits are skipped, and real time does not count."""

import asyncio
import threading
from functools import partial

from kubestow.testing.jumping_loop import run

_take_a_moment = partial(threading.Event().wait, 0.02)


def test_a_wait_is_skipped() -> None:
    """An hour is over at once, and never too early."""

    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(3600.0)
        return asyncio.get_running_loop().time() - began

    assert 3600.0 <= run(main()) < 3600.1


def test_work_takes_no_virtual_time() -> None:
    """The speed of the machine does not matter."""

    async def main() -> float:
        began = asyncio.get_running_loop().time()
        _take_a_moment()
        await asyncio.sleep(0)
        return asyncio.get_running_loop().time() - began

    assert run(main()) < 0.02


def test_a_thread_is_waited_for() -> None:
    """The clock does not jump while a thread runs."""

    async def main() -> float:
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(600.0):
            await asyncio.to_thread(_take_a_moment)
        return asyncio.get_running_loop().time() - began

    assert run(main()) < 600.0

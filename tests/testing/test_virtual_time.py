"""The event loop in virtual time: it jumps instead of sleeping, and stops at the given time."""

import asyncio
from collections.abc import Iterator

import pytest

from kubestow.testing import StuckError, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_sleeping_takes_no_real_time(loop: VirtualLoop) -> None:
    """An hour passes at once, on the loop and on its clock."""
    before = loop.clock.now()
    loop.run(asyncio.sleep(3600))
    assert loop.time() == 3600.0
    assert loop.clock.now() == before + 3600.0


def test_small_steps_add_up_exactly(loop: VirtualLoop) -> None:
    """Ten thousand steps of 0.1 ms are one second."""

    async def steps() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0.0001)

    loop.run(steps())
    assert loop.nanoseconds == 10**9


def test_running_for_a_duration_stops_at_its_end(loop: VirtualLoop) -> None:
    """Timers up to the end fire, in order; later ones stay scheduled."""
    fired: list[float] = []
    for seconds in (3.0, 1.0, 2.0, 2.0000001):
        loop.call_later(seconds, lambda: fired.append(loop.time()))
    loop.run_for(2.0)
    assert fired == [1.0, 2.0]
    loop.run_for(1.0)
    assert fired == [1.0, 2.0, 2.0000001, 3.0]
    assert loop.time() == 3.0


def test_time_passes_even_if_nothing_happens(loop: VirtualLoop) -> None:
    """A duration without timers is over at once."""
    loop.run_for(5.0)
    assert loop.time() == 5.0


def test_running_until_a_condition_holds(loop: VirtualLoop) -> None:
    """The loop stops before the next wait when the condition holds, and returns whether it does."""
    done: list[bool] = []
    loop.call_later(7.0, done.append, True)
    assert loop.run_until(lambda: bool(done), limit=10.0)
    assert loop.time() == 7.0
    assert not loop.run_until(lambda: len(done) > 1, limit=10.0)
    assert loop.time() == 17.0


def test_waiting_for_an_impossible_event_is_an_error(loop: VirtualLoop) -> None:
    """A coroutine that waits forever does not block the test."""
    with pytest.raises(StuckError):
        loop.run(asyncio.Event().wait())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run(asyncio.sleep(0))


def test_a_step_runs_everything_due_at_one_time(loop: VirtualLoop) -> None:
    """Nothing later happens; without a timer there is no step."""
    seen: list[str] = []
    for when, what in ((1.0, "a"), (1.0, "b"), (2.0, "c")):
        loop.call_at(when, seen.append, what)
    assert loop.step()
    assert (loop.time(), seen) == (1.0, ["a", "b"])
    assert loop.step()
    assert not loop.step()
    assert (loop.time(), seen) == (2.0, ["a", "b", "c"])


def test_it_runs_inside_another_running_loop(loop: VirtualLoop) -> None:
    """As in a notebook; the other loop is the running one again afterwards."""

    async def outer() -> None:
        loop.run(asyncio.sleep(60))
        assert loop.time() == 60.0
        await asyncio.sleep(0)

    asyncio.run(outer())


def test_a_timer_between_two_nanoseconds_fires_once(loop: VirtualLoop) -> None:
    """Waiting for a time that rounds to the present ends."""
    due, rung = 20.1234567890123, []

    def ring() -> None:
        if loop.time() < due:
            loop.call_at(due, ring)
        else:
            rung.append(loop.time())

    loop.call_at(due, ring)
    loop.run_for(30)
    assert len(rung) == 1

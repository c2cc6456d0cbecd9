"""The event loop in virtual time: jumps instead of sleeping, and stops where it is told."""

import asyncio
from collections.abc import Iterator

import pytest

from kubestow.testing import StuckError, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_sleeping_costs_no_time(loop: VirtualLoop) -> None:
    """An hour passes at once, on the loop and on its clock."""
    before = loop.clock.now()
    loop.run(asyncio.sleep(3600))
    assert loop.time() == 3600.0
    assert loop.clock.now() == before + 3600.0


def test_small_steps_add_up_exactly(loop: VirtualLoop) -> None:
    """Ten thousand tenths of a millisecond are a second."""

    async def steps() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0.0001)

    loop.run(steps())
    assert loop.nanoseconds == 10**9


def test_running_for_a_while_stops_there(loop: VirtualLoop) -> None:
    """Timers up to the end of the span fire, in order; later ones stay set."""
    fired: list[float] = []
    for seconds in (3.0, 1.0, 2.0, 2.0000001):
        loop.call_later(seconds, lambda: fired.append(loop.time()))
    loop.run_for(2.0)
    assert fired == [1.0, 2.0]
    loop.run_for(1.0)
    assert fired == [1.0, 2.0, 2.0000001, 3.0]
    assert loop.time() == 3.0


def test_time_passes_even_if_nothing_happens(loop: VirtualLoop) -> None:
    """A span in which nothing is to be done is over at once."""
    loop.run_for(5.0)
    assert loop.time() == 5.0


def test_running_until_something_holds(loop: VirtualLoop) -> None:
    """The loop stops before it would wait, as soon as the condition holds, and says whether it does."""
    done: list[bool] = []
    loop.call_later(7.0, done.append, True)
    assert loop.run_until(lambda: bool(done), limit=10.0)
    assert loop.time() == 7.0
    assert not loop.run_until(lambda: len(done) > 1, limit=10.0)
    assert loop.time() == 17.0


def test_waiting_for_what_cannot_happen_is_an_error(loop: VirtualLoop) -> None:
    """A coroutine that waits for nothing in particular does not hang the test."""
    with pytest.raises(StuckError):
        loop.run(asyncio.Event().wait())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run(asyncio.sleep(0))


def test_a_step_is_one_moment(loop: VirtualLoop) -> None:
    """Everything that is due at that moment happens, nothing later; without anything to come there is no step."""
    seen: list[str] = []
    for when, what in ((1.0, "a"), (1.0, "b"), (2.0, "c")):
        loop.call_at(when, seen.append, what)
    assert loop.step()
    assert (loop.time(), seen) == (1.0, ["a", "b"])
    assert loop.step()
    assert not loop.step()
    assert (loop.time(), seen) == (2.0, ["a", "b", "c"])


def test_it_runs_inside_another_loop_that_runs(loop: VirtualLoop) -> None:
    """As in a notebook; the other loop is the running one again afterwards."""

    async def outer() -> None:
        loop.run(asyncio.sleep(60))
        assert loop.time() == 60.0
        await asyncio.sleep(0)

    asyncio.run(outer())


def test_a_timer_between_two_nanoseconds_rings_once(loop: VirtualLoop) -> None:
    """Whoever waits for a moment that rounds to the present does not wait for ever."""
    due, rung = 20.1234567890123, []

    def ring() -> None:
        if loop.time() < due:
            loop.call_at(due, ring)
        else:
            rung.append(loop.time())

    loop.call_at(due, ring)
    loop.run_for(30)
    assert len(rung) == 1

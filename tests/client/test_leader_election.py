"""Leader election: which contender leads when, and that there are never two leaders."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable

import pytest

from kubestow.api.failures import LeaseLostError
from kubestow.client.api import ApiClient
from kubestow.client.election import Elector, Terms
from kubestow.client.leases import LeaseLock
from kubestow.client.requests import Requests
from support.client.doubles import SkewedClock
from support.client.lease_server import LeaseServer
from support.client.scripted import ScriptedServer, opened, serving
from support.client.virtualtime import run


class Contender:
    """An elector that records when it leads."""

    def __init__(self, name: str, server: ScriptedServer, seed: int = 1, skew: float = 0.0) -> None:
        self.name = name
        self.working = False
        self.announced: list[str] = []
        self.led = asyncio.Event()
        self._stack = contextlib.ExitStack()
        channel = self._stack.enter_context(opened(server))
        client = ApiClient(channel, user_agent=name, seconds=5.0)
        lock = LeaseLock(Requests(client, server_timeout=5.0), "kube-system", "kube-scheduler", name)
        self.elector = Elector(
            lock,
            Terms(),
            clock=SkewedClock(skew),
            random=random.Random(seed).random,
            announce=lambda _, what: self.announced.append(what),
        )
        self.task = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self) -> None:
        self.working = True
        self.led.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.working = False

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, LeaseLostError):
            await self.task
        self._stack.close()


@contextlib.asynccontextmanager
async def contest(
    *names: str, skew: float = 0.0
) -> AsyncIterator[tuple[LeaseServer, list[Contender], Callable[[], None]]]:
    """Run contenders at one server, started one after the other; the last value checks that at most one may act."""
    house = LeaseServer()
    async with serving(house) as server:
        contenders: list[Contender] = []
        for number, name in enumerate(names):
            contenders.append(Contender(name, server, number, skew * number))
            await asyncio.sleep(0.05)

        def check() -> None:
            assert sum(contender.elector.may_act for contender in contenders) <= 1
            assert sum(contender.working for contender in contenders) <= 1

        try:
            yield house, contenders, check
        finally:
            for contender in contenders:
                await contender.stop()


async def watch_for(seconds: float, check: Callable[[], None]) -> None:
    """Let time pass and run a check at every step."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        check()
        await asyncio.sleep(0.25)


def test_first_contender_leads_and_keeps_renewing() -> None:
    """The first contender creates the lease and renews it every two seconds; the second waits."""

    async def main() -> None:
        async with contest("one", "two") as (house, (one, two), check):
            await one.led.wait()
            await watch_for(30, check)
            assert (house.holder, two.working, two.elector.leader) == ("one", False, "one")
            assert house.lease is not None
            assert house.lease["spec"]["leaseTransitions"] == 0
            times = [time for time, _ in house.writes]
            assert times[1] - times[0] < 0.5
            assert all(1.9 < later - earlier < 2.2 for earlier, later in itertools.pairwise(times[1:]))
            assert len({spec["acquireTime"] for _, spec in house.writes}) == 1

    run(main())


@pytest.mark.parametrize("skew", [0.0, -86_400.0, 86_400.0])
def test_killed_leader_is_replaced_after_the_lease_expires(skew: float) -> None:
    """A disconnected leader stops within its renew deadline; the other starts after that, whatever its clock shows."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with contest("one", "two", skew=skew) as (house, (one, two), check):
            await one.led.wait()
            await watch_for(5, check)
            house.unreachable.add("one")
            cut = loop.time()
            await watch_for(30, check)
            assert two.working
            assert isinstance(one.task.exception(), LeaseLostError)
            last_of_one = max(time for time, spec in house.writes if spec["holderIdentity"] == "one")
            first_of_two = min(time for time, spec in house.writes if spec["holderIdentity"] == "two")
            assert first_of_two - last_of_one >= 15
            assert first_of_two - cut < 15 + 2 * 4.4 + 2
            assert house.lease is not None
            assert house.lease["spec"]["leaseTransitions"] == 1
            assert one.announced == ["became leader", "stopped leading"]

    run(main())


def test_released_lease_is_acquired_without_waiting() -> None:
    """A leader that is shut down releases the lease; the next one acquires it at its next try."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with contest("one", "two") as (house, (one, two), check):
            await one.led.wait()
            await watch_for(6, check)
            stopped = loop.time()
            await one.stop()
            _, released = house.writes[-1]
            assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)
            await two.led.wait()
            check()
            assert loop.time() - stopped < 2 * 2.2 + 0.5

    run(main())


def test_lease_is_kept_until_the_work_has_ended() -> None:
    """While the leader finishes its work after a stop, it renews, so that no other starts before its end."""

    async def main() -> None:
        house = LeaseServer()
        ended = asyncio.Event()

        async def lead() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(25)
                ended.set()

        async with serving(house) as server, contextlib.AsyncExitStack() as stack:
            channel = stack.enter_context(opened(server))
            lock = LeaseLock(Requests(ApiClient(channel, user_agent="one", seconds=5)), "ns", "lease", "one")
            elector = Elector(lock, Terms(), clock=SkewedClock(), random=lambda: 0.5, announce=lambda *_: None)
            task = asyncio.create_task(elector.run(lead))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.sleep(20)
            assert not ended.is_set()
            assert elector.may_act
            assert house.holder == "one"
            with pytest.raises(asyncio.CancelledError):
                await task
            assert house.holder == ""
        assert ended.is_set()

    run(main())


def test_another_holder_stops_the_leader_at_once() -> None:
    """A leader that finds another holder in the lease does not wait for its deadline."""

    async def main() -> None:
        async with contest("one") as (house, (one,), _):
            await one.led.wait()
            assert house.lease is not None
            house.lease["spec"]["holderIdentity"] = "usurper"
            house.lease["metadata"]["resourceVersion"] = "900"
            with pytest.raises(LeaseLostError):
                async with asyncio.timeout(4):
                    await one.task
            assert house.holder == "usurper"

    run(main())


def test_short_outage_is_survived() -> None:
    """If the server is down for less than the renew deadline, the leader keeps the lease."""

    async def main() -> None:
        async with contest("one", "two") as (house, (one, two), check):
            await one.led.wait()
            await watch_for(3, check)
            house.down = True
            await watch_for(8, check)
            house.down = False
            await watch_for(20, check)
            assert one.working
            assert not two.working

    run(main())


def test_stopped_process_may_not_act_when_it_wakes() -> None:
    """A leader whose process was stopped past its lease may not act, even before any timer has run."""

    async def main() -> None:
        async with contest("one") as (_, (one,), _):
            await one.led.wait()
            before = one.elector.may_act
            loop = asyncio.get_running_loop()
            loop._jumping.skipped += 20.0  # type: ignore[attr-defined]
            assert (before, one.elector.may_act) == (True, False)
            assert one.elector.overdue(4.0)

    run(main())


@pytest.mark.parametrize("seed", range(6))
def test_random_failures_never_make_two_leaders(seed: int) -> None:
    """With contenders disconnected at random, at most one may act at any time."""
    chance = random.Random(seed)

    async def main() -> None:
        async with contest("one", "two", "three", skew=7200.0) as (house, contenders, check):
            for _ in range(12):
                house.down = chance.random() < 0.3
                house.unreachable = {contender.name for contender in contenders if chance.random() < 0.4}
                await watch_for(chance.uniform(1, 12), check)

    run(main())


@pytest.mark.parametrize(
    ("terms", "named"),
    [((10, 10, 2), "leaseDuration"), ((15, 2.4, 2), "renewDeadline"), ((15, 10, 0), "retryPeriod")],
)
def test_invalid_terms_are_rejected(terms: tuple[float, float, float], named: str) -> None:
    """The error names the setting."""
    with pytest.raises(ValueError, match=named):
        Terms(*terms)


def test_end_of_the_work_ends_the_lead() -> None:
    """When the work ends or fails, the lease is released and the exception raised."""

    async def fail() -> None:
        await asyncio.sleep(3)
        raise ZeroDivisionError

    async def main() -> None:
        house = LeaseServer()
        async with serving(house) as server:
            with opened(server) as channel:
                lock = LeaseLock(Requests(ApiClient(channel, user_agent="one")), "ns", "lease", "one")
                elector = Elector(lock, Terms(), clock=SkewedClock(), random=lambda: 0.5, announce=lambda *_: None)
                with pytest.raises(ZeroDivisionError):
                    await elector.run(fail)
                assert house.holder == ""

    run(main())

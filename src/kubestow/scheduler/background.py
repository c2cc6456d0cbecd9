"""Runs what plugins do outside of cycles: timers, and polls of values.

Everything is applied between two cycles. Where the answers of a poll come from is passed in: a live scheduler calls the
function of the plugin, a simulation replays recorded values or asks the plugin for a simulated one.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from kubestow.clock import Clock
from kubestow.scheduler.cluster.events import ClusterEvent
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.framework.caller import place_of
from kubestow.scheduler.framework.polling import Http, NoBackground, NoHttp, PolledValue, Timer
from kubestow.scheduler.framework.results import error_text
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

_JITTER = 0.1
"""The share by which intervals vary, so that replicas do not poll at the same moments."""

Answers = Callable[[PolledValue[Any]], AsyncIterator[Any]]
"""Yields the answers for a value, each when it arrives; an answer that is an Exception is a failure."""


class _Poll:
    """The task that polls a value, and the timer at which it becomes stale."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expiry: Timer | None = None
        self._loop, self._run = loop, run
        # Not before the scheduler runs: otherwise a failure to create it would leave a task behind.
        self._polling: Timer = loop.call_soon(self._start)

    def _start(self) -> None:
        self._polling = self._loop.create_task(self._run())

    def stop(self) -> None:
        """Fetch no more values."""
        self._polling.cancel()

    def cancel(self) -> None:
        self.stop()
        if self.expiry is not None:
            self.expiry.cancel()


class Background:
    """The timers and polls of all plugins."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        answers: Answers,
        http: Http,
        clock: Clock,
        metrics: SchedulerMetrics,
        gate: Gate,
        notify: Callable[[ClusterEvent, Any, Any], None],
    ) -> None:
        """`notify(event, old, new)` retries pods."""
        self.http = http
        self._loop = loop
        self._answers = answers
        self._clock = clock
        self._gate = gate
        self._notify = notify
        self._attempts = metrics.plugin_polls
        self._polls: dict[PolledValue[Any], _Poll] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        metrics.plugin_poll_age.watch(self._ages)

    @property
    def polled(self) -> list[PolledValue[Any]]:
        """The values that are polled."""
        return list(self._polls)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        def call() -> None:
            self._timers.discard(timer)
            self._between_cycles(callback)

        timer = self._loop.call_later(seconds, call)
        self._timers.add(timer)
        return timer

    def poll(self, polled: PolledValue[Any]) -> Timer:
        self._polls[polled] = _Poll(self._loop, lambda: self._run(polled))
        return _Ending(lambda: self._polls.pop(polled).cancel() if polled in self._polls else None)

    def give(self, polled: PolledValue[Any], answer: Any) -> None:
        """Stop polling a value, and replace it; an Exception is a failure."""
        self._polls[polled].stop()
        self._between_cycles(self._apply, polled, answer)

    def close(self) -> None:
        """End all timers and polls."""
        for timer in self._timers:
            timer.cancel()
        for poll in self._polls.values():
            poll.cancel()
        self._polls.clear()

    def _between_cycles(self, change: Callable[..., object], *args: Any) -> None:
        if self._gate.is_closed:
            self._gate.defer(change, *args)
        else:
            change(*args)

    async def _run(self, polled: PolledValue[Any]) -> None:
        async for answer in self._answers(polled):
            self._between_cycles(self._apply, polled, answer)

    def _apply(self, polled: PolledValue[Any], answer: Any) -> None:
        poll = self._polls.get(polled)
        if poll is None:
            # Its plugin has ended while a cycle was waiting.
            return
        failed = isinstance(answer, Exception)
        self._attempts.inc(polled.plugin, "failure" if failed else "success")
        if failed:
            problem = error_text(answer)
            if problem != polled.error:
                log.error("Plugin cannot poll its value", err=problem, plugin=polled.name, at=place_of(answer))
            polled.fail(problem)
            return
        if polled.error:
            log.info("Plugin polls its value again", plugin=polled.name)
        old = polled.value
        polled.succeed(answer, self._clock.now())
        if poll.expiry is not None:
            poll.expiry.cancel()
        poll.expiry = self.call_later(polled.stale_after, lambda: self._expire(polled))
        self._notify(polled.event, old, answer)

    def _expire(self, polled: PolledValue[Any]) -> None:
        polled.expire()
        self._notify(polled.event, polled.value, polled.value)

    def _ages(self) -> dict[tuple[str, ...], float]:
        ages: dict[tuple[str, ...], float] = {}
        for polled in self._polls:
            if polled.updated_at:
                age = self._clock.now() - polled.updated_at
                ages[(polled.plugin,)] = max(age, ages.get((polled.plugin,), 0.0))
        return ages


class _Ending(NamedTuple):
    """What ends a poll."""

    cancel: Callable[[], object]


async def fetch(polled: PolledValue[Any], metrics: SchedulerMetrics) -> Any:
    """Call the function of a plugin, at most for its interval; return its answer or the exception."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        async with asyncio.timeout(polled.interval):
            return await polled.fetch()
    except TimeoutError:
        return TimeoutError(f"no answer within {polled.interval:g} s")
    except Exception as error:
        return error
    finally:
        metrics.plugin_poll_seconds.observe(loop.time() - started, polled.plugin)


def live_answers(metrics: SchedulerMetrics, chance: Callable[[], float] = random.random) -> Answers:
    """Return answers that are fetched at the interval of each value, one after the other."""

    async def answers(polled: PolledValue[Any]) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            yield await fetch(polled, metrics)
            pause = polled.interval * (1 - _JITTER + 2 * _JITTER * chance())
            await asyncio.sleep(max(0.0, started + pause - loop.time()))

    return answers


class SinglePolls(NoBackground):
    """Obtains each value once, on demand, for programs that evaluate pods at one moment."""

    def __init__(self, given: Mapping[str, Any], http: Http | None = None) -> None:
        """`given` are values by plugin, or by plugin and function; without `http`, only these are used."""
        self.http = http or NoHttp()
        self._fetches = http is not None
        self._given = given
        self._polled: list[PolledValue[Any]] = []

    def poll(self, polled: PolledValue[Any]) -> Timer:
        self._polled.append(polled)
        return super().poll(polled)

    def take_given(self, now: float) -> None:
        """Set the values that are given."""
        for polled in self._polled:
            for name in (polled.name, polled.plugin):
                if name in self._given and not polled.updated_at:
                    polled.succeed(polled.decode(self._given[name]), now)

    async def obtain(self, now: float, metrics: SchedulerMetrics) -> list[str]:
        """Set the values that are given, and fetch the others; return why some could not be fetched."""
        self.take_given(now)
        problems = []
        for polled in self._polled:
            if polled.updated_at or not self._fetches:
                continue
            answer = await fetch(polled, metrics)
            if isinstance(answer, Exception):
                polled.fail(error_text(answer))
                problems.append(f"{polled.name} has no value: {polled.error}")
            else:
                polled.succeed(answer, now)
        return problems

"""Benchmark of the web page of a scheduler at 1,000 pods per second: recording moments, and sending them to readers.

Time is virtual, so one second of it takes as much CPU time as a real second at that rate.
"""

import time
from collections.abc import Iterator
from typing import Any

from bench_rows import MILLIS, Row
from kubestow.insight.page.events import Events
from kubestow.insight.page.history import PageHistory
from kubestow.insight.page.watching import Watch, WatchedScheduler
from kubestow.testing import SchedulerHarness, make_node, make_pod

NODES = 5_000
RATE = 1_000
SECONDS = 10
_LOOKS = 4


class _Reader:
    """A reader that counts the bytes it is sent."""

    taken = 0

    def open_stream(self, *_: Any) -> None:
        """Accept the stream."""

    def write(self, data: bytes) -> None:
        self.taken += len(data)


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    for pending in (0, 10_000) if full else (0,):
        for moments, readers in ((1, 0), (_LOOKS, 1)):
            yield _measure(pending, moments, readers)


def _measure(pending: int, moments: int, readers: int) -> Row:
    with SchedulerHarness(record_bytes=1 << 27) as world:
        archive = world.decisions
        assert archive is not None
        history = PageHistory(world.core.cluster, world.core.queue.nominator, archive.recorder.history)
        events, reader = Events(history), _Reader()
        watched = WatchedScheduler(world.core, world.metrics, archive.recorder, world.clock)
        watch, spent = Watch(watched), 0.0
        for number in range(NODES):
            labels = {"kubernetes.io/hostname": f"n{number}", "zone": f"z{number % 3}"}
            world.cluster.add(make_node(f"n{number}", cpu="64", memory="256Gi", labels=labels))
        for number in range(pending):
            world.cluster.add(make_pod(f"big-{number}", cpu="640"))
        world.run_for(5.0)
        _record_moment(watch, history, events)
        stand_in: Any = reader
        for _ in range(readers):
            events.follow(None, b"{}")(stand_in)
        for turn in range(SECONDS * moments):
            for number in range(RATE // moments):
                world.cluster.add(make_pod(f"p-{turn}-{number}", cpu="100m", memory="100Mi"))
            world.run_for(1.0 / moments)
            begin = time.process_time()
            _record_moment(watch, history, events)
            spent += time.process_time() - begin
    subject = "a page open" if readers else "no page open"
    what = f"{subject}{f', {pending:,} pods wait' if pending else ''}: CPU per second"
    return Row(what, 1000 * spent / SECONDS, MILLIS, f"{reader.taken / SECONDS / 1000:.0f} kB/s" if readers else "")


def _record_moment(watch: Watch, history: PageHistory, events: Events) -> None:
    moment = watch.next_moment()
    assert moment is not None
    history.add(moment)
    events.publish(moment)

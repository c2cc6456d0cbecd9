"""/debug/pprof: profiles of CPU time, memory and tasks.

    profile     the main thread's stack, sampled every 10 ms of CPU time; ?seconds=30
    heap        live allocations by the line that made them; ?seconds=5
    goroutine   the stack of every task and every thread; ?debug=1 as text

Nothing is measured until a profile is requested. `heap` is Python's tracemalloc: with PYTHONTRACEMALLOC=10 in the
environment it covers all allocations since the start, else those made during the request. It slows everything down.
"""

import asyncio
import html
import linecache
import signal
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Any

from kubestow.server.health import TEXT
from kubestow.server.http.errors import ApiError, bad_request
from kubestow.server.http.messages import Request, Response
from kubestow.server.pages import PROFILING
from kubestow.server.pprof import Line, Measure, Profile, Stack, line_of

MAX_SECONDS = 55.0
"""The maximum duration of a profile: the response must be complete within a minute."""
INTERVAL_NS = 10_000_000
_FRAMES = 16
"""Number of stack frames kept of an allocation."""
_NANOSECONDS = Measure("cpu", "nanoseconds")
_OCTETS = b"application/octet-stream"
_DESCRIPTIONS = {
    "profile": "CPU time; ?seconds=30 sets the duration",
    "heap": "live allocations; ?seconds=5 sets the duration",
    "goroutine": "stacks of all tasks and threads; ?debug=1 as text",
}


class Profiling:
    """The profiling pages; each profile is taken for one client at a time."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._pages: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "profile": self._profile,
            "heap": self._heap,
            "goroutine": self._tasks,
        }

    def answer(self, request: Request) -> Response | Awaitable[Response]:
        """Return the index or a profile. Raises ApiError if there is no such profile, or if it is being taken."""
        name = request.path.removeprefix(PROFILING).strip("/")
        if not name:
            return Response(200, _index(), content_type=b"text/html; charset=utf-8")
        page = self._pages.get(name)
        if page is None:
            raise ApiError(404, "NotFound", f"there is no profile {name}; there are: {', '.join(self._pages)}")
        if name in self._running:
            raise ApiError(409, "Conflict", f"the profile {name} is being taken for another client; try again later")
        return self._run_alone(name, page, request)

    async def _run_alone(self, name: str, page: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
        self._running.add(name)
        try:
            return await page(request)
        finally:
            self._running.discard(name)

    async def _profile(self, request: Request) -> Response:
        seconds, started = _seconds(request, 30.0), time.time_ns()
        sampled: Counter[Stack] = Counter()

        def sample(_: int, frame: FrameType | None) -> None:
            sampled[tuple(_lines(frame))] += 1

        previous = signal.signal(signal.SIGPROF, sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_NS / 1e9, INTERVAL_NS / 1e9)
        try:
            await asyncio.sleep(seconds)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)
        return _file(
            "profile",
            Profile(
                (Measure("samples", "count"), _NANOSECONDS),
                {stack: (count, count * INTERVAL_NS) for stack, count in sampled.items()},
                (_NANOSECONDS, INTERVAL_NS),
                started,
                time.time_ns() - started,
            ),
        )

    async def _heap(self, request: Request) -> Response:
        started, since_start = time.time_ns(), tracemalloc.is_tracing()
        seconds = _seconds(request, 0.0 if since_start else 5.0)
        if not since_start:
            tracemalloc.start(_FRAMES)
        try:
            await asyncio.sleep(seconds)
            taken = tracemalloc.take_snapshot()
        finally:
            if not since_start:
                tracemalloc.stop()
        samples = {}
        for found in taken.statistics("traceback"):
            stack = tuple(Line(_function(frame), frame.filename, frame.lineno) for frame in reversed(found.traceback))
            samples[stack] = (found.count, found.size)
        when = (
            "since the start of the process" if since_start else f"within {seconds:g} s; PYTHONTRACEMALLOC adds earlier"
        )
        space = Measure("inuse_space", "bytes")
        measures = (Measure("inuse_objects", "count"), space)
        return _file("heap", Profile(measures, samples, (space, 1), started, comment=f"allocated {when}"))

    async def _tasks(self, request: Request) -> Response:
        stacks = list(_stacks())
        if request.query.get("debug", "0") != "0":
            return Response(200, _text(stacks).encode(), content_type=TEXT)
        count = Measure("goroutine", "count")
        samples = {stack: (number,) for stack, number in Counter(stack for _, stack in stacks).items()}
        return _file("goroutine", Profile((count,), samples, (count, 1), time.time_ns()))


def _stacks() -> Iterator[tuple[str, Stack]]:
    for task in asyncio.all_tasks():
        yield f"task {task.get_name()}", tuple(_awaited(task.get_coro()))[::-1]
    for number, frame in sys._current_frames().items():  # noqa: SLF001 there is no other way
        yield f"thread {number}", tuple(_lines(frame))


def _awaited(waiting: Any) -> Iterator[Line]:
    """Yield the lines of a coroutine and of the coroutines that it awaits, outermost first."""
    while waiting is not None:
        frame: FrameType | None = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is None:
            return
        yield line_of(frame.f_code, frame.f_lineno)
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)


def _lines(frame: FrameType | None) -> Iterator[Line]:
    while frame is not None:
        yield line_of(frame.f_code, frame.f_lineno)
        frame = frame.f_back


def _function(frame: tracemalloc.Frame) -> str:
    """Return the source line as the name: tracemalloc records no functions."""
    return linecache.getline(frame.filename, frame.lineno).strip() or frame.filename


def _text(stacks: list[tuple[str, Stack]]) -> str:
    parts = [f"goroutine profile: total {len(stacks)}\n"]
    for name, stack in stacks:
        parts.append("".join((f"{name}\n", *(f"#\t{at.function}\t{at.file}:{at.number}\n" for at in stack))))
    return "\n".join(parts)


def _seconds(request: Request, default: float) -> float:
    text = request.query.get("seconds", "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= MAX_SECONDS:
        raise bad_request(f"seconds must be a number from 0 to {MAX_SECONDS:g}, not {text[:20]!r}")
    return seconds


def _file(name: str, profile: Profile) -> Response:
    disposition = ("Content-Disposition", f'attachment; filename="{name}"')
    return Response(200, profile.write(), content_type=_OCTETS, headers=(disposition,))


def _index() -> bytes:
    rows = "".join(
        f"<li><a href='{PROFILING}/{name}'>{name}</a>: {html.escape(text)}</li>" for name, text in _DESCRIPTIONS.items()
    )
    return f"<html><head><title>{PROFILING}/</title></head><body><ul>{rows}</ul></body></html>\n".encode()

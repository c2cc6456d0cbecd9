"""/debug/pprof: profiles in pprof's format, taken only on request."""

import asyncio
import gzip
import signal
import subprocess
import time
import tracemalloc
from collections.abc import Awaitable, Iterator
from pathlib import Path
from shutil import which

import pytest

from kubestow.server.http.errors import ApiError
from kubestow.server.http.messages import Request, Response
from kubestow.server.pprof import Line, Measure, Profile
from kubestow.server.profiling import Profiling
from support.server.serving import Answer, Setting, served


def burn(seconds: float) -> int:
    """Use CPU time."""
    end, count = time.process_time() + seconds, 0
    while time.process_time() < end:
        count += 1
    return count


def _asked(path: str, *, works: bool = False) -> Answer:
    async def main() -> Answer:
        async with served(Setting(open_paths=("/*",))) as reader:
            asking = asyncio.create_task(reader.get(path))
            while works and not asking.done():
                burn(0.01)
                await asyncio.sleep(0)
            return await asking

    return asyncio.run(main())


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Return the fields of a protocol buffer, limited to the types in profiles."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = varint()
            yield key >> 3, message[at : at + length]
            at += length


def _strings(profile: bytes) -> list[str]:
    return [bytes(value).decode() for field, value in _fields(gzip.decompress(profile)) if field == 6 and value]


def test_cpu_time() -> None:
    """The function that uses it is in the profile; afterwards sampling has stopped."""
    answer = _asked("/debug/pprof/profile?seconds=3", works=True)
    assert (answer.status, answer.content_type) == (200, "application/octet-stream")
    strings = _strings(answer.raw)
    assert {"cpu", "nanoseconds", "burn", __file__} <= set(strings)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL


def test_memory() -> None:
    """By the line that allocated it; tracing stops with the response."""
    answer = _asked("/debug/pprof/heap?seconds=0.3")
    strings = _strings(answer.raw)
    assert {"inuse_objects", "inuse_space", "bytes"} <= set(strings)
    assert any("within 0.3 s" in text for text in strings)
    assert not tracemalloc.is_tracing()


def test_memory_since_the_start() -> None:
    """If tracing was enabled before, it stays enabled."""
    tracemalloc.start(4)
    try:
        answer = _asked("/debug/pprof/heap")
        assert any("since the start" in text for text in _strings(answer.raw))
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_tasks() -> None:
    """As a profile, and as text with the name of each."""
    answer = _asked("/debug/pprof/goroutine")
    assert "SecureServer._refresh" in _strings(answer.raw)
    answer = _asked("/debug/pprof/goroutine?debug=1")
    assert answer.text.startswith("goroutine profile: total ")
    assert "SecureServer._refresh\t" in answer.text
    assert "thread " in answer.text


def test_one_at_a_time() -> None:
    """A second request gets an error until the first has finished."""

    async def main() -> None:
        profiling = Profiling()

        def ask() -> Awaitable[Response]:
            answer = profiling.answer(Request("GET", b"/debug/pprof/profile?seconds=0.5", {}, b""))
            assert not isinstance(answer, Response)
            return answer

        first = asyncio.ensure_future(ask())
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="being taken for another client") as refused:
            ask()
        assert refused.value.code == 409
        await first
        assert (await ask()).status == 200

    asyncio.run(main())


@pytest.mark.parametrize("seconds", ["much", "-1", "56", "nan"])
def test_invalid_durations(seconds: str) -> None:
    """The error names the parameter."""
    answer = _asked(f"/debug/pprof/profile?seconds={seconds}")
    assert answer.status == 400
    assert "seconds must be" in answer.text


def test_the_index() -> None:
    """It lists the profiles; the error for other names does, too."""
    answer = _asked("/debug/pprof/")
    assert all(f"/debug/pprof/{name}" in answer.text for name in ("profile", "heap", "goroutine"))
    answer = _asked("/debug/pprof/mutex")
    assert (answer.status, "goroutine" in answer.text) == (404, True)


@pytest.mark.skipif(which("go") is None, reason="no Go, whose pprof would open the profile")
def test_pprof_opens_it(tmp_path: Path) -> None:
    """Functions, lines and numbers."""
    file = tmp_path / "profile"
    nanoseconds = Measure("cpu", "nanoseconds")
    inner, outer = Line("inner", "a.py", 7), Line("outer", "b.py", 300)
    samples = {(inner, outer): (2, 20_000_000), (outer,): (1, 10_000_000)}
    measures = (Measure("samples", "count"), nanoseconds)
    file.write_bytes(Profile(measures, samples, (nanoseconds, 10_000_000), 1, 10**9, "a word").write())
    done = subprocess.run(["go", "tool", "pprof", "-top", "-lines", file], capture_output=True, text=True, check=True)
    assert "inner a.py:7" in done.stdout
    assert "20ms 66.67%" in done.stdout
    assert "a word" in done.stdout

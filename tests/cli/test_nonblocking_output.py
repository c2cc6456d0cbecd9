"""Lines for a reader who may be away."""

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kubestow.cli import nonblocking_output
from kubestow.cli.nonblocking_output import NonBlockingOutput


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Where it is read, and where it is written."""
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


def read(pipe: tuple[int, int], output: NonBlockingOutput) -> str:
    """All that there is for a reader who comes back."""
    found = b""
    with suppress(BlockingIOError):
        while piece := os.read(pipe[0], 1 << 20):
            found += piece
            output.flush()
    return found.decode()


def test_lines_come_as_they_were_said(pipe: tuple[int, int]) -> None:
    """In order, and a line that is longer than a pipe takes at once comes whole."""
    output = NonBlockingOutput(pipe[1])
    said = ["one", "x" * 100_000, "three"]
    for line in said:
        output.write(line)
    output.flush()
    assert read(pipe, output).splitlines() == said


def test_output_does_not_wait_for_a_slow_reader(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a full pipe, flush returns; a reader that continues gets the kept lines and the number of omitted ones."""
    monkeypatch.setattr(nonblocking_output, "MOST", 5_000)
    output = NonBlockingOutput(pipe[1])
    for number in range(20_000):
        output.write(f"line {number}")
        if number % 100 == 0:
            output.flush()
    *lines, last = read(pipe, output).splitlines()
    assert len(lines) > 5_000
    assert lines == [f"line {number}" for number in range(len(lines))]
    assert last == f"({20_000 - len(lines)} lines omitted: the reader was too slow)"


def test_a_reader_that_left_is_reported(pipe: tuple[int, int]) -> None:
    """The caller can then stop writing."""
    output = NonBlockingOutput(pipe[1])
    os.close(pipe[0])
    output.write("hello")
    with pytest.raises(BrokenPipeError):
        output.flush()

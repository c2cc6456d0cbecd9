"""Line output that never blocks, even if the reader of the pipe is slow.

A pipe that is not read is full after 64 KiB, and writes to it block. So lines are buffered here, up to a limit; later
lines are dropped and counted in a final line.
"""

import os
import select
from collections import deque

from kubestow.cli.terminal import printable

MOST = 10_000
_PIECE = select.PIPE_BUF
"""Number of bytes that a writable pipe accepts without blocking."""


class NonBlockingOutput:
    """A file, a terminal or a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._left_out = 0

    def write(self, text: str) -> None:
        """Buffer one or more lines."""
        if len(self._lines) < MOST:
            self._lines.append(f"{printable(text)}\n".encode(errors="replace"))
        else:
            self._left_out += 1

    def flush(self) -> None:
        """Write without blocking. Raises BrokenPipeError if the reader is gone."""
        while self._next() and select.select((), (self._descriptor,), (), 0)[1]:
            line = self._lines.popleft()
            written = os.write(self._descriptor, line[:_PIECE])
            if written < len(line):
                self._lines.appendleft(line[written:])

    def _next(self) -> bool:
        if not self._lines and self._left_out:
            self._lines.append(b"(%d lines omitted: the reader was too slow)\n" % self._left_out)
            self._left_out = 0
        return bool(self._lines)

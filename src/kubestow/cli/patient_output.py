"""Lines for somebody who may not be reading, from a process that must not wait for that.

A pipe that nobody empties is full after 64 KiB, and whoever writes to it then waits. So lines wait here in its place,
some of them; those that find no room are left out, and a line says how many.
"""

import os
import select
from collections import deque

MOST = 10_000
_PIECE = select.PIPE_BUF
"""So many bytes go into a pipe at once if anything does."""


class PatientOutput:
    """A file, a terminal or a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._left_out = 0

    def say(self, text: str) -> None:
        """One line or several, to be written when there is room for them."""
        if len(self._lines) < MOST:
            self._lines.append(f"{text}\n".encode(errors="replace"))
        else:
            self._left_out += 1

    def flush(self) -> None:
        """Write what is taken now; raises BrokenPipeError when nobody reads any more."""
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

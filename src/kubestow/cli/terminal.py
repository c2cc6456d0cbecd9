"""Text for terminals: control characters and bidirectional overrides of objects never reach one.

`main` guards standard output and standard error: what a command writes there passes `printable`, which replaces these
characters by their escapes in JSON, so that JSON keeps its meaning. Styles and cursor movements of the commands
themselves are marked by `trusted` with a random number that objects cannot contain. Newlines and tabs stay.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MARK = f"\x00{os.urandom(8).hex()}"
_TRUSTED = re.compile(f"{_MARK}([^\x00]*)\x00")


def printable(text: str) -> str:
    """Return a text without control characters, except for newlines, tabs and trusted sequences."""
    if _UNSAFE.search(text) is None:
        return text
    parts = _TRUSTED.split(text)
    parts[::2] = (_UNSAFE.sub(_escape, part) for part in parts[::2])
    return "".join(parts)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def trusted(sequence: str) -> str:
    """Return a control sequence that `printable` keeps."""
    return f"{_MARK}{sequence}\x00"


def style(text: str, **styles: Any) -> str:
    """Return a text with the styles of click, which `click.echo` removes if there is no terminal."""
    begin, _, end = click.style("\0", **styles).partition("\0")
    return f"{trusted(begin)}{text}{trusted(end)}"


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guard what is written to standard output and standard error."""
    before = sys.stdout, sys.stderr
    # An output that was closed before the start is None.
    guards = tuple(stream and cast("TextIO", _Guard(stream)) for stream in before)
    sys.stdout, sys.stderr = guards
    try:
        yield
    finally:
        # click replaces an output whose reader is gone; that is kept.
        if sys.stdout is guards[0]:
            sys.stdout = before[0]
        if sys.stderr is guards[1]:
            sys.stderr = before[1]


class _Guard:
    """A text stream that passes only printable text to another one."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """Where rich writes: its own cursor movements, and the text of `console`."""

    def write(self, text: str) -> int:
        return self.rich_proxied_file.write(printable(text))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> "_BinaryGuard":
        """The binary stream below, for writers of UTF-8."""
        return _BinaryGuard(self.rich_proxied_file.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


class _BinaryGuard:
    """A binary stream that passes only printable text."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        return self._stream.write(printable(data.decode(errors="surrogateescape")).encode(errors="surrogateescape"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def console(*, stderr: bool = False) -> "Console":
    """Return a console of rich that shows only printable text."""
    # Imported only now: a slow import that few commands need.
    from rich.console import Console
    from rich.segment import Segment

    class Guarded(Console):
        def render(self, *args: Any, **options: Any) -> "Iterator[Segment]":
            for segment in super().render(*args, **options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return Guarded(stderr=stderr)

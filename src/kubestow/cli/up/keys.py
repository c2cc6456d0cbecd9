"""Keys of a terminal: read without Enter while the screen is shown; Ctrl-C still stops the process."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

UP, DOWN, ENTER, ESCAPE = "up", "down", "enter", "escape"
_NAMES = {
    "\x1b[A": UP,
    "\x1bOA": UP,
    "k": UP,
    "\x1b[B": DOWN,
    "\x1bOB": DOWN,
    "j": DOWN,
    "\r": ENTER,
    "\n": ENTER,
    " ": ENTER,
    "\x1b": ESCAPE,
}
_LONGEST = 32


@contextmanager
def keys_to(callback: Callable[[str], None]) -> Iterator[bool]:
    """Call back with each key until the exit; yield whether standard input is a terminal, which is set back then."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield False
        return
    file, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(file)

    def read() -> None:
        for key in split_keys(os.read(file, _LONGEST).decode(errors="replace")):
            callback(key)

    tty.setcbreak(file)
    loop.add_reader(file, read)
    try:
        yield True
    finally:
        loop.remove_reader(file)
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def split_keys(text: str) -> Iterator[str]:
    """Yield the names of the keys that a terminal has sent; a letter is its own name."""
    while text:
        length = next((size for size in (3, 1) if text[:size] in _NAMES), 1)
        yield _NAMES.get(text[:length], text[:length])
        text = text[length:]

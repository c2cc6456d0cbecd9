"""Keys of a terminal: read without Enter while the screen is shown; Ctrl-C and Ctrl-Z still work."""

import asyncio
import os
import re
import signal
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
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)
"""A sequence that a terminal sends for one key, or a letter."""
_LONGEST = 32


def is_in_background() -> bool:
    """Return whether another job of the shell has the terminal, as after `kubestow up &`."""
    try:
        return os.tcgetpgrp(sys.stdout.fileno()) != os.getpgrp()
    except OSError:
        return False


@contextmanager
def keys_to(callback: Callable[[str], None], leave: Callable[[], None], enter: Callable[[], None]) -> Iterator[bool]:
    """Call back with each key until the exit; yield whether standard input is a terminal, which is restored then.

    Ctrl-Z calls `leave` and suspends the process with the terminal restored; `enter` is called when it continues.
    """
    loop, has_keys = asyncio.get_running_loop(), sys.stdin is not None and sys.stdin.isatty()
    file = sys.stdin.fileno() if has_keys else -1
    before = termios.tcgetattr(file) if has_keys else []

    def begin() -> None:
        if has_keys:
            tty.setcbreak(file)
            loop.add_reader(file, read)

    def end() -> None:
        if has_keys:
            loop.remove_reader(file)
            termios.tcsetattr(file, termios.TCSADRAIN, before)

    def read() -> None:
        for key in split_keys(os.read(file, _LONGEST).decode(errors="replace")):
            callback(key)

    def suspend() -> None:
        leave()
        end()
        os.kill(os.getpid(), signal.SIGSTOP)
        begin()
        enter()

    begin()
    loop.add_signal_handler(signal.SIGTSTP, suspend)
    try:
        yield has_keys
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)
        end()


def split_keys(text: str) -> Iterator[str]:
    """Yield the names of the keys that a terminal has sent; a letter, or an unknown sequence, is its own name."""
    return (_NAMES.get(key, key) for key in _KEY.findall(text))

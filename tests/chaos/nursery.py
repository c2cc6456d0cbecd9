"""Processes that start in no time: one that has imported everything forks whenever it is told to.

A start costs a twentieth of what an interpreter takes that imports everything anew, so that hundreds of them can be
killed in minutes. What is forked is a process like any other: `kill -9`, limits and signals do to it what they do.
Run as a program, this module is that one: a line of JSON each way, a `Birth` for a pid, and a pid for how it ended.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any

_IMPORTED = (
    "kubestow.cli.scheduler.process",
    "kubestow.cli.apiserver",
    "kubestow.apiserver",
    "kubestow.apiserver.controlplane",
)


@dataclass
class Birth:
    """What is to be run: `kubestow` with arguments."""

    arguments: list[str]
    log: str
    limits: dict[str, int] = field(default_factory=dict)
    """By the name in `resource`, such as RLIMIT_NOFILE."""
    skew: float = 0.0
    """Seconds that its clock is ahead."""


class Forked:
    """A process, with what `subprocess.Popen` has."""

    def __init__(self, nursery: "Nursery", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and self._has_ended(0):
                self.returncode = self._nursery.ask(self.pid)
        return self.returncode

    def wait(self) -> int:
        while (code := self.poll()) is None:
            self._has_ended(1000)
        return code

    def kill(self) -> None:
        with self._lock:
            if self.returncode is None:
                os.kill(self.pid, signal.SIGKILL)

    def _has_ended(self, milliseconds: int) -> bool:
        ended = os.pidfd_open(self.pid)
        try:
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            return bool(poll.poll(milliseconds))
        finally:
            os.close(ended)


class Nursery:
    """The one that forks."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
        self._lock = threading.Lock()

    def fork(self, birth: Birth) -> Forked:
        return Forked(self, self.ask(asdict(birth)))

    def ask(self, question: Any) -> int:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def close(self) -> None:
        """End it, and all that it has forked."""
        self._process.communicate()


@functools.cache
def nursery() -> Nursery:
    made = Nursery()
    atexit.register(made.close)
    return made


def main() -> None:
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    living: set[int] = set()
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, int):
            living.discard(question)
            answer = os.waitstatus_to_exitcode(os.waitpid(question, 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _be(Birth(**question))
            living.add(answer)
        print(answer, flush=True)
    for pid in living:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _be(birth: Birth) -> None:
    """Become a process of its own, which never returns."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(birth.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for name, limit in birth.limits.items():
            number = getattr(resource, name)
            resource.setrlimit(number, (limit, resource.getrlimit(number)[1]))
        if "RLIMIT_FSIZE" in birth.limits:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if birth.skew:
            right = time.time
            time.time = lambda: right() + birth.skew
        import_module("kubestow.cli").main(birth.arguments, prog_name="kubestow")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()

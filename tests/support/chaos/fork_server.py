"""Starts processes quickly: a server process that has imported everything forks on request.

Forking takes a twentieth of the time of a new interpreter that imports everything, so that hundreds of processes can be
killed within minutes. A forked process is a normal one for `kill -9`, limits and signals.

Run as a program, this module is the server: a line of JSON each way, a `ProcessSpec` for a PID, and a PID for its exit
status.
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
class ProcessSpec:
    """The process to start: `kubestow` with arguments."""

    arguments: list[str]
    log: str
    limits: dict[str, int] = field(default_factory=dict)
    """Resource limits by their names in `resource`, such as RLIMIT_NOFILE."""
    skew: float = 0.0
    """Seconds by which its clock is ahead."""


class ForkedProcess:
    """A forked process, with the methods of `subprocess.Popen`."""

    def __init__(self, fork_server: "ForkServer", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = fork_server
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and self._has_ended(0):
                self.returncode = self._server.request(self.pid)
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


class ForkServer:
    """The client of the forking server."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
        self._lock = threading.Lock()

    def fork(self, spec: ProcessSpec) -> ForkedProcess:
        return ForkedProcess(self, self.request(asdict(spec)))

    def request(self, message: Any) -> int:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def close(self) -> None:
        """Terminate the server and all forked processes."""
        self._process.communicate()


@functools.cache
def fork_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.close)
    return server


def main() -> None:
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    living: set[int] = set()
    for line in sys.stdin:
        message = json.loads(line)
        if isinstance(message, int):
            living.discard(message)
            answer = os.waitstatus_to_exitcode(os.waitpid(message, 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                _become(ProcessSpec(**message))
            living.add(answer)
        print(answer, flush=True)
    for pid in living:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _become(spec: ProcessSpec) -> None:
    """Run the program in a forked process; never returns."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(spec.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for name, limit in spec.limits.items():
            number = getattr(resource, name)
            resource.setrlimit(number, (limit, resource.getrlimit(number)[1]))
        if "RLIMIT_FSIZE" in spec.limits:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if spec.skew:
            right = time.time
            time.time = lambda: right() + spec.skew
        import_module("kubestow.cli").main(spec.arguments, prog_name="kubestow")
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

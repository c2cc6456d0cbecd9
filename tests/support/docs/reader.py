"""A reader who does what a page says: types its commands into one shell, saves its files, leaves its servers running.

`kubestow up` and `kubestow apiserver` go on until the end of the page, or until the page starts the next one; what is
started with `&` goes on until the end. `make up` is `kubestow up` as the Makefile starts it. `kubestow scheduler` reads
all that it is given, and ends. `kubectl wait` is more patient than it would be.

Where a page shows an answer, it must come: `...` stands for anything, on a line of its own for any lines. Of what
kubectl shows, names that are made up and their nodes, addresses, ages, the order of lines and the width of columns may
differ; what it reads may also take a moment to become true.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from support.docs.pages import File, Typed
from support.repository import ROOT

KUBECONFIG = "kubestow.kubeconfig"
_END = "-- end of what a command said: "
_SECONDS = 300.0
_MADE_UP = r"\b[a-z]+-(?:[a-z0-9]{10}|extended-resources)-[a-z0-9]{5}\b(?:-[a-z]+-[a-z0-9]{5}\b)?"
_SINCE_1_34 = (r"( deleted) from [\w-]+ namespace$", r"\1")
"""The line in which kubectl reports a deletion."""
_VARYING = ((_MADE_UP, "*"), (r"\b(\d+m)?\d+s\b", "*"), (r"\b10\.[\d.]+", "*"), (r" +", " "), _SINCE_1_34)
_NODE = (r"\bnode-\d+", "*")


class Reader:
    """Someone with a shell in an empty folder, beside what the repository has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for there in ("Makefile", "deploy", "examples", "scripts", "src"):
            (folder / there).symlink_to(ROOT / there)
        (folder / ".venv").symlink_to(sys.prefix)
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        }
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=self._environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._server: subprocess.Popen[str] | None = None

    def close(self) -> None:
        self._stop_server()
        self._type("kill $(jobs -p)")
        _, stdout = self._pipes()
        self._shell.communicate(timeout=_SECONDS)
        stdout.close()

    def do(self, step: Typed | File, *, may_fail: bool = False) -> None:
        """Do one step, and see that it answers what the page says."""
        if isinstance(step, File):
            (self._folder / step.name).write_text(step.text)
            return
        server = server_arguments(step.command)
        if server is not None:
            said = self._start_server(server)
            assert not step.answer or _anywhere(said) == _anywhere(step.answer), said
            return
        command = step.command
        if command.startswith("kubestow scheduler "):
            command += " --write-config-to /dev/null"
        if command.startswith("kubectl wait ") and "--timeout" not in command:
            command += f" --timeout={_SECONDS:.0f}s"
        answer, status = self._type(command)
        reads = step.command.startswith(("kubectl get ", "kubectl events"))
        until = time.monotonic() + _SECONDS
        while reads and not says(step, answer) and time.monotonic() < until:
            time.sleep(0.2)
            answer, status = self._type(command)
        assert status == 0 or may_fail, f"$ {step.command}\n" + "\n".join(answer)
        assert says(step, answer), f"$ {step.command}\n" + "\n".join(answer)

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        return self._shell.stdin, self._shell.stdout

    def _type(self, command: str) -> tuple[list[str], int]:
        """What a command says, and its exit status, which the next command may ask for as $?."""
        stdin, stdout = self._pipes()
        stdin.write(f'(exit ${{status:-0}}); {command}\nstatus=$?; printf "%s%s\\n" "{_END}" "$status"\n')
        stdin.flush()
        said = []
        for line in stdout:
            before, end, status = line.partition(_END)
            if end:
                said += [before] if before else []
                return [line for line in said if not line.startswith("Warning: ")], int(status)
            said.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended with: {command}")

    def _start_server(self, arguments: list[str]) -> list[str]:
        """What it says when it is there."""
        self._stop_server()
        self._server = subprocess.Popen(
            ["kubestow", *arguments, "--port", "0", "--kubeconfig", KUBECONFIG],
            cwd=self._folder,
            env=self._environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._server.stdout is not None
        said = []
        for line in self._server.stdout:
            said.append(line.rstrip("\n"))
            if line.startswith(("Ctrl-C", "export KUBECONFIG")):
                self._type(f"export KUBECONFIG=$PWD/{KUBECONFIG}")
                return said
        raise AssertionError("\n".join(said))

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.communicate(timeout=_SECONDS)
            self._server = None


def server_arguments(command: str) -> list[str] | None:
    """What is given to `kubestow` by a command that goes on running; None for others."""
    words = shlex.split(command, comments=True)
    if words[:2] == ["make", "up"]:
        given = "".join(word.removeprefix("ARGS=") for word in words[2:])
        return ["up", *shlex.split(given)]
    program = words[0].removeprefix(".venv/bin/")
    return words[1:] if program == "kubestow" and words[1] in ("up", "apiserver") else None


def says(step: Typed, said: list[str]) -> bool:
    """Whether that is what the page shows."""
    if not step.answer:
        return True
    shown = step.answer
    if step.command.startswith("kubectl "):
        varying = (*_VARYING, _NODE) if re.search(_MADE_UP, "\n".join(shown)) else _VARYING
        shown, said = (sorted(_shape(line, varying) for line in lines) for lines in (shown, said))
    return re.fullmatch(_pattern(shown), "\n".join(said) + "\n") is not None


def _anywhere(lines: list[str]) -> list[str]:
    """Whatever the port and the folder."""
    return [re.sub(r":\d+|[\w./-]*kubeconfig", "*", line) for line in lines]


def _shape(line: str, varying: Iterable[tuple[str, str]]) -> str:
    for pattern, replacement in varying:
        line = re.sub(pattern, replacement, line)
    return line.strip()


def _pattern(shown: list[str]) -> str:
    return "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n"
        for line in shown
    )

"""Runs targets with mutated inputs, and stores those that break them."""

import hashlib
import random
import resource
import signal
import traceback
from pathlib import Path
from typing import NamedTuple

from support.fuzzing.mutating import mutated
from support.fuzzing.targets import TARGETS
from support.repository import ROOT

CORPUS = ROOT / "tests/fuzzing/corpus"
PATIENCE = 30
"""Limit of processor time for one input in seconds, on a slow machine."""
ROOM = 4 << 30
"""Limit of additional address space in bytes."""


class Find(NamedTuple):
    """An input that broke a target."""

    target: str
    data: bytes
    trace: str


class _HungError(Exception):
    pass


def _raise_hung(*_: object) -> None:
    raise _HungError(f"took longer than {PATIENCE} s")


def attempt(target: str, data: bytes) -> Find | None:
    """Run a target with an input; return a find if it raises an exception."""
    before = signal.signal(signal.SIGPROF, _raise_hung)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        TARGETS[target].run(data)
    except Exception:
        return Find(target, data, traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def fuzz(target: str, seed: int, inputs: int, max_finds: int = 5) -> list[Find]:
    """Try up to `inputs` mutated inputs; stop after `max_finds` finds with different last lines."""
    rng, found = random.Random(f"{target} {seed}"), dict[str, Find]()
    for _ in range(inputs):
        find = attempt(target, mutated(rng, TARGETS[target].seeds))
        if find is not None:
            found.setdefault(_last_line(find), find)
            if len(found) >= max_finds:
                break
    return list(found.values())


def _last_line(find: Find) -> str:
    """Return the last line of the project's code in the traceback."""
    return [line for line in find.trace.splitlines() if line.startswith("  File")][-1]


def limit_memory() -> None:
    """Limit memory, so that inputs that make a target allocate gigabytes raise MemoryError."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, resource.RLIM_INFINITY))


def add_to_corpus(find: Find) -> Path:
    """Add a find to the corpus, which the tests run from then on."""
    folder = CORPUS / find.target.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / hashlib.sha256(find.data).hexdigest()[:16]
    file.write_bytes(find.data)
    return file

"""Gives targets mutated inputs, and keeps those that break them."""

import hashlib
import random
import resource
import signal
import traceback
from pathlib import Path
from typing import NamedTuple

from fuzzing.mutating import mutated
from fuzzing.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
PATIENCE = 30
"""Seconds of processor time that one input may take, on a slow machine."""
ROOM = 4 << 30
"""Bytes of address space more than at the start."""


class Found(NamedTuple):
    """An input that broke a target."""

    target: str
    data: bytes
    trace: str


class _HungError(Exception):
    pass


def _hung(*_: object) -> None:
    raise _HungError(f"took longer than {PATIENCE} s")


def attempt(target: str, data: bytes) -> Found | None:
    """Give a target an input; what it raises is a find."""
    before = signal.signal(signal.SIGPROF, _hung)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        TARGETS[target].run(data)
    except Exception:
        return Found(target, data, traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def run(target: str, seed: int, inputs: int, most: int = 5) -> list[Found]:
    """So many mutated inputs; stops after a few finds that end in different lines."""
    chance, found = random.Random(f"{target} {seed}"), dict[str, Found]()
    for _ in range(inputs):
        find = attempt(target, mutated(chance, TARGETS[target].seeds))
        if find is not None:
            found.setdefault(_where(find), find)
            if len(found) >= most:
                break
    return list(found.values())


def _where(find: Found) -> str:
    """The last line of ours that the traceback names."""
    return [line for line in find.trace.splitlines() if line.startswith("  File")][-1]


def limit_memory() -> None:
    """Inputs that make a target take gigabytes raise MemoryError."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, resource.RLIM_INFINITY))


def keep(find: Found) -> Path:
    """Put a find into the corpus, which tests try again from then on."""
    folder = CORPUS / find.target.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / hashlib.sha256(find.data).hexdigest()[:16]
    file.write_bytes(find.data)
    return file

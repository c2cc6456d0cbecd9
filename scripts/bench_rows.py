"""What a section of the benchmark yields, and how it measures a single call."""

import timeit
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MICROS = "us"
MILLIS = "ms"
RATE = "/s"
"""The one unit of which more is better."""
MEGABYTES = "MB"


class Row(NamedTuple):
    """One line of the table."""

    what: str
    value: float
    unit: str
    note: str = ""

    @property
    def result(self) -> str:
        return f"{self.value:,.0f} {self.unit}" if self.value >= 1000 else f"{self.value:.4g} {self.unit}"


def seconds_per_call(call: Callable[[], object], budget: float = 0.5) -> float:
    """The best of five runs that together take about `budget` seconds: the least disturbed by other programs."""
    timer = timeit.Timer(call)
    once = max(min(timer.repeat(3, 1)), 1e-7)
    number = max(1, int(budget / 5 / once))
    return min(timer.repeat(5, number)) / number


def micros(what: str, seconds: float, note: str = "") -> Row:
    """A row with a duration."""
    return Row(what, seconds * 1e6, MICROS, note)


def peak_memory(process: int | str) -> float:
    """The most memory that a process ever had, in MB; not by getrusage, which counts that of its parent, too."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:", 1)[1].split()[0]) / 1024

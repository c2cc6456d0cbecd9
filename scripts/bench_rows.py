"""The rows that a section of the benchmark yields, and the measurement of a single call."""

import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MICROS = "us"
MILLIS = "ms"
RATE = "/s"
"""The only unit for which more is better."""
MEGABYTES = "MB"


class Row(NamedTuple):
    """One figure.

    `what` is "SUBJECT" or "SUBJECT: MEASURE". In tables, a subject is a line and a measure is a column.
    """

    what: str
    value: float
    unit: str
    note: str = ""

    @property
    def subject(self) -> str:
        return self.what.partition(": ")[0]

    @property
    def measure(self) -> str:
        return self.what.partition(": ")[2] or "result"

    @property
    def result(self) -> str:
        return f"{self.value:,.0f} {self.unit}" if self.value >= 100 else f"{self.value:.3g} {self.unit}"


def seconds_per_call(call: Callable[[], object], budget: float = 0.5) -> float:
    """Return the CPU seconds of a call: the best of five runs that together take about `budget` seconds."""
    timer = timeit.Timer(call, timer=time.process_time)
    once = max(min(timer.repeat(3, 1)), 1e-7)
    number = max(1, int(budget / 5 / once))
    return min(timer.repeat(5, number)) / number


def micros(what: str, seconds: float, note: str = "") -> Row:
    """Return a row with a duration."""
    return Row(what, seconds * 1e6, MICROS, note)


def peak_memory(process: int | str) -> float:
    """Return the peak memory of a process in MB; getrusage would include its parent's."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:", 1)[1].split()[0]) / 1024

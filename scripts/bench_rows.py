"""What a section of the benchmark yields, and how it measures a single call."""

import timeit
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table."""

    what: str
    result: str
    note: str = ""


def seconds_per_call(call: Callable[[], object], budget: float = 0.5) -> float:
    """The best of five runs that together take about `budget` seconds: the least disturbed by other programs."""
    timer = timeit.Timer(call)
    once = max(min(timer.repeat(3, 1)), 1e-7)
    number = max(1, int(budget / 5 / once))
    return min(timer.repeat(5, number)) / number


def micros(seconds: float) -> str:
    """A duration for the table."""
    return f"{seconds * 1e6:.2f} us"

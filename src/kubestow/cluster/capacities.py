"""The cpu and memory that nodes offer, in floats, to calculate with.

Below 2**45 (35 TB of memory on one node) that is exact as far as it matters, and twice as fast as integers.
"""

from typing import NamedTuple

import numpy as np

from kubestow.cluster.arrays import FloatArray, IntArray

EXACT_IN_FLOAT = 1 << 45


class Capacities(NamedTuple):
    """Of all rows of a view."""

    floats: FloatArray | None
    """`[r, i]` is resource `r` on row `i`; None if one is too large."""
    are_everywhere: bool
    """Whether every row offers both."""


def capacities_of(allocatable: IntArray) -> Capacities:
    """From the columns of cpu and memory."""
    is_exact = int(allocatable.max(initial=0)) < EXACT_IN_FLOAT
    floats = allocatable.astype(np.float64) if is_exact else None
    return Capacities(floats, int(allocatable.min(initial=1)) > 0)

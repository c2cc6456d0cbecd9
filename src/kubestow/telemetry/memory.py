"""Memory that has been freed stays with the process, and is seldom searched for garbage.

Every cycle uses arrays of some hundred kilobytes for a moment. The C library would give such memory back to the system
each time and take it again page by page, which costs several times what is done with it.
"""

import ctypes

GC_THRESHOLDS = (200_000, 12, 1_000)
"""Scheduling leaves no cycles behind, and each binding under way is some hundred objects to look at."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt."""
_KEPT = 256 << 20
_SMALLEST_APART = 64 << 20
"""What is larger is still given back at once."""


def keep_freed_memory() -> None:
    """Has an effect where the C library is glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _SMALLEST_APART)
    mallopt(_TRIM_THRESHOLD, _KEPT)

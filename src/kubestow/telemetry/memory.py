"""Memory settings of the process: freed memory is kept for a while, and garbage collections are rare.

Every cycle uses arrays of some hundred kilobytes for a moment. By default the C library returns such memory to the
system each time and requests it again page by page, which costs several times the computation itself.
"""

import ctypes

GC_THRESHOLDS = (200_000, 12, 1_000)
"""Scheduling creates no reference cycles, and each binding in progress is some hundred objects to traverse."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt."""
_TRIM_BYTES = 256 << 20
_MMAP_BYTES = 64 << 20
"""Larger blocks are still returned to the system at once."""


def keep_freed_memory() -> None:
    """Keep freed memory in the process. Has an effect only with glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
    mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)


def release_freed_memory() -> None:
    """Return freed memory to the system, also that between blocks in use. Has an effect only with glibc."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)

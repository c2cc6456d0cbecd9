"""Freed memory stays with the process until it is released."""

import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from kubestow.telemetry.memory import keep_freed_memory, release_freed_memory


def faults_of_using_memory_for_a_moment() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another C library")
def test_memory_used_for_a_moment_is_not_taken_from_the_system_again() -> None:
    """Without it, each of 20 arrays of 8 MB would be 2,000 pages to be allocated again."""
    keep_freed_memory()
    np.ones(1_000_000)
    assert faults_of_using_memory_for_a_moment() < 20_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="another C library")
def test_gaps_between_blocks_in_use_are_returned_to_the_system() -> None:
    """Without it, nine of ten blocks that are freed stay with the process as long as the tenth is used."""
    keep_freed_memory()
    blocks = [bytearray(10_000) for _ in range(10_000)]
    blocks[:] = blocks[::10]
    before = resident_pages()
    release_freed_memory()
    assert resident_pages() < before - 10_000

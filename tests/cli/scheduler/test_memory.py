"""Freed memory stays with the process."""

import resource
import sys

import numpy as np
import pytest

from kubestow.telemetry.memory import keep_freed_memory


def faults_of_using_memory_for_a_moment() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another C library")
def test_memory_used_for_a_moment_is_not_taken_from_the_system_again() -> None:
    """Without it, each of 20 arrays of 8 MB would be 2,000 pages to be allocated again."""
    keep_freed_memory()
    np.ones(1_000_000)
    assert faults_of_using_memory_for_a_moment() < 20_000

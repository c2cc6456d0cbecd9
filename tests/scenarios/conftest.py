"""Schedulers in virtual time, whose consistency is checked at the end of each scenario."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubestow.testing import SchedulerHarness
from support.scenarios import consistency
from support.scenarios.start import Start


@pytest.fixture
def start() -> Iterator[Start]:
    """Yield a function that starts a scheduler; it takes the arguments of SchedulerHarness."""
    harnesses: list[SchedulerHarness] = []

    def start_one(*args: Any, **options: Any) -> SchedulerHarness:
        harnesses.append(SchedulerHarness(*args, **options))
        return harnesses[-1]

    try:
        yield start_one
        for harness in harnesses:
            consistency.check(harness)
            if harness.is_idle:
                consistency.check_settled(harness)
    finally:
        for harness in harnesses:
            harness.close()

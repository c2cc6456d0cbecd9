"""Settings of all tests: how hypothesis chooses examples, that answers of all plugins are checked, and lost tasks.

Hypothesis runs the same examples every time, so that a change fails only for its own faults; with EXPLORE=1 it chooses
new ones.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from kubestow.scheduler.framework.hook import Hook

SLOW = [HealthCheck.too_slow]
"""Machines may be."""
settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, print_blob=True, suppress_health_check=SLOW
)
settings.register_profile("explore", deadline=None, suppress_health_check=SLOW)
settings.load_profile("explore" if os.environ.get("EXPLORE") else "same")

Hook.checks_trusted = True

LONG = ("tests/browser/", "tests/chaos/", "tests/docs/test_commands.py", "tests/fuzzing/")
"""Tests with the marker `long`, by the start of their path: `make check` runs them, `make test` does not."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the long tests."""
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def no_task_left_behind() -> Iterator[None]:
    """A task that is destroyed while it is pending is only logged by asyncio; here it fails a test."""
    destroyed: list[str] = []

    class Watching(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "Task was destroyed" in record.getMessage():
                destroyed.append(record.getMessage())

    watching, asyncio_log = Watching(), logging.getLogger("asyncio")
    asyncio_log.addHandler(watching)
    yield
    asyncio_log.removeHandler(watching)
    assert destroyed == []

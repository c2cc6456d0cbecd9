"""What holds for all tests: how hypothesis looks for examples, and that no task is left behind.

Hypothesis looks afresh on people's machines, and always at the same examples in CI, where CI is set.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("everywhere", deadline=None)
settings.register_profile("ci", settings.get_profile("everywhere"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")


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

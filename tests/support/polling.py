"""Polling of real processes."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0
"""Seconds that a test waits for a process before it fails."""


def until(holds: Callable[[], Any], explain: Callable[[], str] = str, seconds: float = PATIENCE) -> Any:
    """Return the first true result of `holds`; fail with an explanation after `seconds`."""
    end = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < end, f"waited in vain for {seconds:g} s\n{explain()}"
        time.sleep(0.02)
    return answer

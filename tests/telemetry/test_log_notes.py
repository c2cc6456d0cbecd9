"""Warnings of the modules of a package as notes."""

from kubestow.simulator.in_memory.virtual_loop import VirtualClock
from kubestow.telemetry.log_notes import forward_warnings
from kubestow.telemetry.logs import get_logger


def test_the_same_cause_is_noted_once_a_minute() -> None:
    """For all modules and resources; info lines, other packages, and records after the block are not noted."""
    clock, notes = VirtualClock(), list[str]()
    log, other = get_logger("kubestow.client.something"), get_logger("kubestow.scheduler.queue.something")
    with forward_warnings("kubestow.client", notes.append, clock):
        for resource in ("nodes", "pods"):
            log.warning("Watching again", err="cannot connect", resource=resource)
        log.error("Lost something", resource="pods")
        log.info("Listing again", err="gone")
        other.warning("Late", err="slow")
        clock.seconds += 61
        log.warning("Watching again", err="cannot connect", resource="nodes")
    log.warning("Watching again", err="cannot resolve", resource="nodes")
    assert notes == ["cannot connect", 'Lost something resource="pods"', "cannot connect"]

"""Warnings of the modules of a package, told as notes."""

from kubestow.simulator.in_memory.virtual_loop import VirtualClock
from kubestow.telemetry.log_notes import noting
from kubestow.telemetry.logs import get_logger


def test_the_same_cause_is_noted_once_a_minute() -> None:
    """However many modules and resources it meets; what is no warning, of another package, or later, is not noted."""
    clock, said = VirtualClock(), list[str]()
    log, other = get_logger("kubestow.client.something"), get_logger("kubestow.scheduler.queue.something")
    with noting("kubestow.client", said.append, clock):
        for resource in ("nodes", "pods"):
            log.warning("Watching again", err="cannot connect", resource=resource)
        log.error("Lost something", resource="pods")
        log.info("Listing again", err="gone")
        other.warning("Late", err="slow")
        clock.seconds += 61
        log.warning("Watching again", err="cannot connect", resource="nodes")
    log.warning("Watching again", err="cannot resolve", resource="nodes")
    assert said == ["cannot connect", 'Lost something resource="pods"', "cannot connect"]

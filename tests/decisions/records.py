"""Records as a recorder would have made them, for those who show them."""

from typing import Any

from kubestow.decisions.record import Findings, Record


def made(
    time: float, pod: str, uid: str, outcome: str, *, node: str = "", seconds: float = 0.0, **found: Any
) -> Record:
    """A record with nothing in it but what is given."""
    namespace, name = pod.split("/")
    findings = Findings("default-scheduler", 0, 0, outcome, **found)
    return Record(findings, 0, time, seconds, namespace, name, uid, 1, 0.0, None, None, node)

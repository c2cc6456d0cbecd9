"""Records as a recorder would have made them, for those who show them."""

from typing import Any

from kubestow.decisions.record import Record


def made(time: float, pod: str, uid: str, outcome: str, **fields: Any) -> Record:
    """A record with nothing in it but what is given."""
    namespace, name = pod.split("/")
    return Record(
        0, time, 0.0, namespace, name, uid, "default-scheduler", 0, 1, 0.0, None, None, 0, outcome, 0, **fields
    )

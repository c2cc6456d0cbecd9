"""The files of --poll-data: values that plugins poll."""

from typing import Any

import msgspec


class _Sample(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file."""

    time: float
    """Seconds since the beginning."""
    value: Any


def samples_in(data: bytes) -> list[tuple[float, Any]]:
    """Return the values of a file with their times: one JSON value, or lines of samples. Raises ValueError."""
    try:
        whole: Any = msgspec.json.decode(data)
    except msgspec.DecodeError:
        whole = None
    if whole is not None and not (isinstance(whole, dict) and whole.keys() == {"time", "value"}):
        return [(0.0, whole)]
    samples = [msgspec.json.decode(line, type=_Sample) for line in data.splitlines() if line.strip()]
    return sorted(((one.time, one.value) for one in samples), key=lambda sample: sample[0])

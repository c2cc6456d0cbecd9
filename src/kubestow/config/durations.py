"""Durations in the notation of Go, `10m0s`, `1h2m`, `100ms`, stored as integer nanoseconds."""

import re

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>ns|us|µs|μs|ms|s|m|h)")
_MAX_NANOSECONDS = 2**63 - 1


class Duration(int):
    """A duration in nanoseconds; `str()` returns Go's notation."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Parse Go's notation. Raises ValueError, whose message describes the notation."""
        unsigned = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
        total = 0
        if unsigned != "0":
            total = _sum_of_parts(unsigned, text)
        return cls(-total if text.startswith("-") else total)

    @property
    def seconds(self) -> float:
        return self / 1_000_000_000

    def __str__(self) -> str:
        sign, nanoseconds = ("-", -int(self)) if self < 0 else ("", int(self))
        if nanoseconds == 0:
            return "0s"
        if nanoseconds < 1_000_000_000:
            unit = "ns" if nanoseconds < 1_000 else "µs" if nanoseconds < 1_000_000 else "ms"
            return f"{sign}{_decimal(nanoseconds, _NANOSECONDS[unit])}{unit}"
        minutes, rest = divmod(nanoseconds, _NANOSECONDS["m"])
        hours, minutes = divmod(minutes, 60)
        seconds = f"{_decimal(rest, _NANOSECONDS['s'])}s"
        if hours:
            return f"{sign}{hours}h{minutes}m{seconds}"
        return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


def _sum_of_parts(unsigned: str, text: str) -> int:
    total = position = 0
    while position < len(unsigned) or not unsigned:
        part = _PART.match(unsigned, position)
        if part is None or not (part["whole"] or part["fraction"]):
            raise ValueError(f'"{text}" is not a duration; write for example 10s, 1m30s or 500ms')
        unit = _NANOSECONDS[part["unit"]]
        fraction = part["fraction"] or ""
        total += int(part["whole"] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        position = part.end()
    if total > _MAX_NANOSECONDS:
        raise ValueError(f'the duration "{text}" is too long; the longest is about 292 years')
    return total


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    fraction = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)

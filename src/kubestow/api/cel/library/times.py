"""Timestamps and durations, with nanoseconds as unit."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import total_ordering

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.conversions import conversion_error, plain
from kubestow.api.cel.library.operators import divide_int
from kubestow.api.cel.values import INT_MAX, INT_MIN, TYPE_NAMES

LIBRARY = Library()
define = LIBRARY.define

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -62135596800, 253402300799
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND}
_UNITS["h"] = 3600 * _SECOND
# Patterns are compiled on first use.
_PART = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = rf"([+-]?)((?:{_PART})+|0)"
_TIMESTAMP = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_MAX_TEXT = 100


@total_ordering
class _Nanoseconds:
    """A number of nanoseconds; values of one class are compared by it."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nanoseconds) and (type(other), other.nanoseconds) == (type(self), self.nanoseconds)

    def __lt__(self, other: "_Nanoseconds") -> bool:
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)


class Duration(_Nanoseconds):
    """A duration."""

    __slots__ = ()

    def __init__(self, nanoseconds: int) -> None:
        if not INT_MIN <= nanoseconds <= INT_MAX:
            raise EvaluationError("duration overflow")
        super().__init__(nanoseconds)

    def __str__(self) -> str:
        return f"{plain(self.nanoseconds / _SECOND)}s"


class Timestamp(_Nanoseconds):
    """A time from the year 1 to 9999, formatted with the UTC offset of its source."""

    __slots__ = ("offset",)

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        if not _EARLIEST <= nanoseconds // _SECOND <= _LATEST:
            raise EvaluationError("timestamp overflow")
        super().__init__(nanoseconds)
        self.offset = offset

    def __str__(self) -> str:
        fraction = f".{self.nanoseconds % _SECOND:09}".rstrip("0").rstrip(".")
        moment = self.at(timezone(timedelta(seconds=self.offset)))
        zone = f"{moment:%z}"
        return (
            f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0")
            + fraction
            + (f"{zone[:3]}:{zone[3:5]}" if self.offset else "Z")
        )

    def at(self, zone: tzinfo) -> datetime:
        """Return the date and time in a zone, to the microsecond."""
        try:
            return (_EPOCH + timedelta(microseconds=self.nanoseconds // 1000)).astimezone(zone)
        except OverflowError:
            raise EvaluationError("timestamp overflow") from None


TYPE_NAMES[Duration] = "google.protobuf.Duration"
TYPE_NAMES[Timestamp] = "google.protobuf.Timestamp"


@define("duration", "(string) -> duration")
def to_duration(text: str) -> Duration:
    form = re.fullmatch(_DURATION, text) if len(text) <= _MAX_TEXT else None
    if form is None:
        raise conversion_error(text, "google.protobuf.Duration")
    total = 0
    for number, unit in re.findall(_PART, form[2]):
        whole, _, fraction = number.partition(".")
        total += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
    try:
        return Duration(-total if form[1] == "-" else total)
    except EvaluationError:
        raise conversion_error(text, "google.protobuf.Duration") from None


@define("duration", "(int) -> duration")
def int_to_duration(number: int) -> Duration:
    """Raise an error, as cel-go does, which declares this overload but does not implement it."""
    raise conversion_error(number, "google.protobuf.Duration")


@define("timestamp", "(string) -> timestamp")
def to_timestamp(text: str) -> Timestamp:
    form = re.fullmatch(_TIMESTAMP, text) if len(text) <= _MAX_TEXT else None
    try:
        if form is None or int(form[4] or 0) > 24 or int(form[5] or 0) > 59:
            raise ValueError(text)
        if form[1].startswith("0000"):
            raise EvaluationError("timestamp overflow")
        moment = datetime.fromisoformat(form[1] + "+00:00")
    except ValueError:
        raise conversion_error(text, "google.protobuf.Timestamp") from None
    offset = (int(form[4]) * 60 + int(form[5])) * (-60 if form[3] == "-" else 60) if form[3] else 0
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
    return Timestamp(seconds * _SECOND + int(f"{form[2] or 0:0<9}"[:9]), offset)


define("timestamp", "(int) -> timestamp")(lambda seconds: Timestamp(seconds * _SECOND))
define("int", "(timestamp) -> int")(lambda moment: moment.nanoseconds // _SECOND)
define("int", "(duration) -> int")(lambda duration: duration.nanoseconds)


@define("_+_", "(duration, duration) -> duration")
def add_durations(left: Duration, right: Duration) -> Duration:
    return Duration(left.nanoseconds + right.nanoseconds)


def _shifted(moment: Timestamp, duration: Duration, sign: int = 1) -> Timestamp:
    return Timestamp(moment.nanoseconds + sign * duration.nanoseconds, moment.offset)


define("_+_", "(timestamp, duration) -> timestamp")(_shifted)
define("_+_", "(duration, timestamp) -> timestamp")(lambda duration, moment: _shifted(moment, duration))
define("_-_", "(timestamp, duration) -> timestamp")(lambda moment, duration: _shifted(moment, duration, -1))
define("_-_", "(duration, duration) -> duration", "(timestamp, timestamp) -> duration")(
    lambda left, right: Duration(left.nanoseconds - right.nanoseconds)
)


def _zone(name: str) -> tzinfo:
    """Return a zone by its name, or by its offset such as -08:00."""
    hours, colon, minutes = name.partition(":")
    if not colon:
        if name in ("", "UTC"):
            return UTC
        # Imported here because the import is slow, and few expressions name a zone.
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise EvaluationError(f"unknown time zone {name}") from None
    try:
        total = int(hours) * 60 + int(minutes) * (-1 if name[0] == "-" else 1)
        return timezone(timedelta(minutes=total))
    except (ValueError, OverflowError):
        raise EvaluationError(f"unknown time zone {name}") from None


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda time: time.year,
    "getMonth": lambda time: time.month - 1,
    "getDayOfYear": lambda time: time.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda time: time.day - 1,
    "getDate": lambda time: time.day,
    "getDayOfWeek": lambda time: time.isoweekday() % 7,
    "getHours": lambda time: time.hour,
    "getMinutes": lambda time: time.minute,
    "getSeconds": lambda time: time.second,
    "getMilliseconds": lambda time: time.microsecond // 1000,
}
for _function, _part in _PARTS.items():
    define(_function, "timestamp.() -> int", "timestamp.(string) -> int")(
        lambda moment, zone="", part=_part: part(moment.at(_zone(zone)))
    )
_SPANS = {"getHours": _UNITS["h"], "getMinutes": _UNITS["m"], "getSeconds": _SECOND, "getMilliseconds": _UNITS["ms"]}
for _function, _span in _SPANS.items():
    define(_function, "duration.() -> int")(lambda duration, span=_span: divide_int(duration.nanoseconds, span))

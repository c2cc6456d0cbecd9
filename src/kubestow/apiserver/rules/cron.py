"""Schedules of CronJobs: five fields of minutes, hours, days, months and weekdays, or a macro such as @daily.

Times are local to a time zone. An hour that is skipped in spring has no times; of an hour that is repeated in autumn,
the first one counts.
"""

import re
from calendar import day_abbr, month_abbr
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {name.lower(): number for number, name in enumerate(month_abbr) if name}
_DAYS = {name.lower(): (number + 1) % 7 for number, name in enumerate(day_abbr)}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
"""Minimum, maximum and names of the values of minutes, hours, days, months and weekdays."""
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_LOOK_AHEAD_DAYS = 5 * 366


@dataclass(frozen=True, slots=True)
class Schedule:
    """The values at which a schedule fires."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    """Whether day of month or day of week is unrestricted, so that the other one decides."""
    every: float = 0.0
    """For @every: the interval in seconds."""

    def after(self, moment: float, zone: tzinfo) -> float | None:
        """Return the first time after a moment, in seconds since 1970; None if there is none within five years."""
        if self.every:
            return float(int(moment)) + self.every
        local = datetime.fromtimestamp(moment, UTC).astimezone(zone)
        for ahead in range(_LOOK_AHEAD_DAYS):
            day = local.date() + timedelta(days=ahead)
            if self._has(day):
                for hour in sorted(self.hours):
                    if not ahead and hour < local.hour:
                        continue
                    for minute in sorted(self.minutes):
                        wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                        exact = wall.astimezone(UTC)
                        if exact.timestamp() > moment and exact.astimezone(zone).hour == hour:
                            return exact.timestamp()
        return None

    def latest(self, earliest: float, now: float, zone: tzinfo) -> tuple[float | None, int]:
        """Return the last time after `earliest` and not after `now`, and the number of times, counted up to 101."""
        found, count = None, 0
        moment = self.after(earliest, zone)
        while moment is not None and moment <= now and count <= 100:
            found, count = moment, count + 1
            moment = self.after(moment, zone)
        window = 60.0
        while count > 100 and window < now - earliest:
            near = self.after(now - window, zone)
            if near is not None and near <= now:
                return self.latest(now - window, now, zone)[0], count
            window *= 2
        return found, count

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month and in_week if self.any_day else in_month or in_week


def parse(text: str) -> Schedule:
    """Parse a schedule; raises ValueError."""
    if text.startswith("@every "):
        rest = text.removeprefix("@every ").strip()
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(rest))
        if _DURATION.sub("", rest) or seconds < 1:
            raise ValueError(f"failed to parse duration {text}")
        return Schedule(every=float(int(seconds)))
    if text.startswith("@") and text not in _MACROS:
        raise ValueError(f"unrecognized descriptor: {text}")
    parts = _MACROS.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, hours, days, months, weekdays = (_field(part, *field) for part, field in zip(parts, _FIELDS, strict=True))
    return Schedule(minutes[0], hours[0], days[0], months[0], weekdays[0], any_day=days[1] or weekdays[1])


def _field(text: str, low: int, high: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """Return the values of a field, and whether it is unrestricted (`*` or `?`)."""
    found: set[int] = set()
    is_open = False
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        first_text, dash, last_text = span.partition("-")
        if span in ("*", "?"):
            first, last = low, high
            is_open |= not slash or step_text == "1"
        else:
            first = _value(first_text, names)
            last = _value(last_text, names) if dash else high if slash else first
        step = _value(step_text, {}) if slash else 1
        if first < low:
            raise ValueError(f"beginning of range ({first}) below minimum ({low}): {part}")
        if last > high:
            raise ValueError(f"end of range ({last}) above maximum ({high}): {part}")
        if first > last:
            raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
        if step == 0:
            raise ValueError(f"step of range should be a positive number: {part}")
        found.update(range(first, last + 1, step))
    return frozenset(found), is_open


def _value(text: str, names: dict[str, int]) -> int:
    number = names.get(text.lower())
    if number is None:
        if not text.isdecimal() or len(text) > 4:
            raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
        number = int(text)
    return number

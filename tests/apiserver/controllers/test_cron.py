"""Cron schedules: parsing, and the times they match."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.rules import cron

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> float:
    """Return a time in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def after(schedule: str, moment: str, zone: tzinfo = UTC) -> str:
    """Return the next time of a schedule in a zone."""
    found = cron.parse(schedule).after(at(moment), zone)
    assert found is not None
    return datetime.fromtimestamp(found, zone).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-01-01T00:01"),
        ("*/15 * * * *", "2026-01-01T00:15"),
        ("5/20 * * * *", "2026-01-01T00:05"),
        ("0 12 * * *", "2026-01-01T12:00"),
        ("0 0 * * MON", "2026-01-05T00:00"),
        ("0 0 * * 5-6", "2026-01-02T00:00"),
        ("0 0 * * sat,sun", "2026-01-03T00:00"),
        ("0 0 31 * *", "2026-01-31T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 1 jul-sep *", "2026-07-01T00:00"),
        ("0 0 13 * FRI", "2026-01-02T00:00"),
        ("0 0 13 * *", "2026-01-13T00:00"),
        ("0 0 ? * FRI", "2026-01-02T00:00"),
        ("30 1-3 * * *", "2026-01-01T01:30"),
        ("@hourly", "2026-01-01T01:00"),
        ("@daily", "2026-01-02T00:00"),
        ("@weekly", "2026-01-04T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@every 1h30m", "2026-01-01T01:30"),
    ],
)
def test_the_next_time(schedule: str, expected: str) -> None:
    """The start is the first moment of 2026, a Thursday."""
    assert after(schedule, "2026-01-01T00:00:00+00:00") == f"{expected}+00:00"


def test_times_are_those_of_a_zone() -> None:
    """Noon in Berlin is at different UTC times in summer and winter."""
    assert after("0 12 * * *", "2026-01-01T12:30:00+01:00", BERLIN) == "2026-01-02T12:00+01:00"
    assert after("0 12 * * *", "2026-07-01T12:30:00+02:00", BERLIN) == "2026-07-02T12:00+02:00"


def test_an_hour_that_does_not_exist_has_no_times() -> None:
    """02:30 is skipped when clocks are set forward."""
    assert after("30 2 * * *", "2026-03-28T12:00:00+01:00", BERLIN) == "2026-03-30T02:30+02:00"


def test_a_repeated_hour_counts_once() -> None:
    """02:30 when clocks are set back."""
    first = "2026-10-25T02:30+02:00"
    assert after("30 2 * * *", "2026-10-24T12:00:00+02:00", BERLIN) == first
    assert after("30 2 * * *", "2026-10-25T02:30:00+02:00", BERLIN) == "2026-10-26T02:30+01:00"


def test_a_day_that_does_not_exist() -> None:
    """The search ends without a result."""
    assert cron.parse("0 0 30 2 *").after(at("2026-01-01T00:00:00+00:00"), UTC) is None


@pytest.mark.parametrize(
    "schedule",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "a * * * *",
     "5-1 * * * *", "*/0 * * * *", "@sometimes", "@every", "@every x", "1- * * * *", "-1 * * * *"],
)  # fmt: skip
def test_invalid_schedules_are_rejected(schedule: str) -> None:
    """The error describes the problem."""
    with pytest.raises(ValueError, match=r"."):
        cron.parse(schedule)


FIELDS = st.tuples(
    st.sampled_from(["*", "*/7", "0", "10-20/3", "59"]),
    st.sampled_from(["*", "*/5", "0", "22-23"]),
    st.sampled_from(["*", "1", "31", "*/10"]),
    st.sampled_from(["*", "2", "jan-mar", "12"]),
    st.sampled_from(["*", "0", "mon-fri", "0,6"]),
)


@given(fields=FIELDS, minutes=st.integers(0, 60 * 24 * 365))
def test_no_time_is_left_out(fields: tuple[str, ...], minutes: int) -> None:
    """The next time matches, and is also the latest time up to itself."""
    schedule = cron.parse(" ".join(fields))
    start = at("2026-01-01T00:00:00+00:00") + 60 * minutes
    found = schedule.after(start, UTC)
    if found is None:
        return
    moment = datetime.fromtimestamp(found, UTC)
    assert moment.minute in schedule.minutes
    assert moment.hour in schedule.hours
    assert moment.month in schedule.months
    assert schedule.latest(start, found, UTC) == (found, 1)


def test_the_latest_of_very_many() -> None:
    """It is found without counting all of them."""
    now = at("2026-06-01T00:00:30+00:00")
    found, count = cron.parse("* * * * *").latest(at("2020-01-01T00:00:00+00:00"), now, UTC)
    assert (found, count > 100) == (now - 30, True)

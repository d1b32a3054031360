"""The contract of cron's daylight saving, in zones whose changes differ: an hour, an hour, half an hour, a day."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.model.cron import Cron

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")
# The days around the changes of 2026, in all of the zones above.
CHANGES = (datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 4, 5, tzinfo=UTC),
           datetime(2026, 10, 4, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC))  # fmt: skip

minutes = st.sampled_from(["0", "30", "15,45", "59", "*/20", "*", "0-10/5"])
hours = st.sampled_from(["1", "2", "1,2,3", "0", "23", "*", "*/2", "0-4"])
days = st.sampled_from(["* * *", "* * SUN", "25-31 * *", "1,5 * MON"])
crons = st.builds(
    lambda minute, hour, day, zone: Cron(f"{minute} {hour} {day}", zone), minutes, hours, days, st.sampled_from(ZONES)
)
moments = st.builds(
    lambda change, offset: change + offset,
    st.sampled_from(CHANGES),
    st.timedeltas(timedelta(days=-2), timedelta(days=2)),
)


def local(cron: Cron, moments_found: Iterator[datetime]) -> list[str]:
    zone = zoneinfo.ZoneInfo(cron.timezone)
    return [moment.astimezone(zone).strftime("%d %H:%M %z") for moment in sorted(moments_found)]


def of_day(cron: Cron, day: date) -> list[str]:
    zone = zoneinfo.ZoneInfo(cron.timezone)
    start = datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)
    end = datetime.combine(day + timedelta(days=1), time(), tzinfo=zone).astimezone(UTC) - timedelta(microseconds=1)
    return local(cron, cron.between(start, end, anchor=start))


@settings(deadline=None, max_examples=50)
@given(cron=crons, start=moments, length=st.timedeltas(timedelta(0), timedelta(days=3)))
def test_walking_forward_listing_backward_and_counting_agree(cron: Cron, start: datetime, length: timedelta) -> None:
    end = start + length
    walked: list[datetime] = []
    planned = cron.after(start - timedelta(microseconds=1), anchor=start)
    while planned <= end and len(walked) < 40:
        walked.append(planned)
        planned = cron.after(planned, anchor=start)

    listed = list(cron.between(start, end, anchor=start))

    assert all(one > other for one, other in pairwise(listed))
    assert list(reversed(listed))[:40] == walked
    assert cron.count(start, end, anchor=start) == len(listed)


@settings(deadline=None, max_examples=50)
@given(cron=crons, moment=moments, offset=st.timedeltas(timedelta(0), timedelta(days=4)))
def test_the_next_time_does_not_depend_on_where_one_starts_to_look(cron: Cron, moment: datetime, offset: timedelta) -> None:
    seen_from_afar = min(cron.between(moment - offset, moment + timedelta(days=40), anchor=moment), default=None)
    planned = cron.after(moment, anchor=moment)

    assert cron.after(planned - timedelta(microseconds=1), anchor=moment) == planned
    assert seen_from_afar is None or seen_from_afar <= planned
    assert cron.latest(planned, anchor=moment) == planned


@settings(deadline=None, max_examples=50)
@given(cron=crons, moment=moments)
def test_a_planned_time_shows_on_the_wall_clock_or_is_the_first_moment_after_a_gap(cron: Cron, moment: datetime) -> None:
    zone = zoneinfo.ZoneInfo(cron.timezone)
    planned = cron.after(moment, anchor=moment)
    wall = planned.astimezone(zone)
    just_before = (planned - timedelta(minutes=1)).astimezone(zone)

    is_after_a_gap = wall.utcoffset() != just_before.utcoffset()
    fields = Cron(cron.expression, "UTC")
    as_utc = wall.replace(tzinfo=UTC)
    is_named = fields.after(as_utc - timedelta(microseconds=1), anchor=as_utc) == as_utc

    assert is_named or is_after_a_gap


@pytest.mark.parametrize(
    ("cron", "day", "expected"),
    [
        # Berlin: 02:00 becomes 03:00 on 29 March, 03:00 becomes 02:00 on 25 October.
        (Cron("30 2 * * *", "Europe/Berlin"), date(2026, 3, 29), ["29 03:00 +0200"]),
        (Cron("15,30 2,3 * * *", "Europe/Berlin"), date(2026, 3, 29), ["29 03:00 +0200", "29 03:15 +0200", "29 03:30 +0200"]),
        (Cron("30 2 * * *", "Europe/Berlin"), date(2026, 10, 25), ["25 02:30 +0200"]),
        (
            Cron("30 */2 * 3 *", "Europe/Berlin"),
            date(2026, 3, 29),
            [f"29 {hour:02}:30 {'+0100' if hour < 2 else '+0200'}" for hour in range(0, 24, 2) if hour != 2],
        ),
        (
            Cron("*/30 2 * * *", "Europe/Berlin"),
            date(2026, 10, 25),
            ["25 02:00 +0200", "25 02:30 +0200", "25 02:00 +0100", "25 02:30 +0100"],
        ),
        # New York: 02:00 becomes 03:00 on 8 March, 02:00 becomes 01:00 on 1 November.
        (Cron("0 2 * * *", "America/New_York"), date(2026, 3, 8), ["08 03:00 -0400"]),
        (Cron("30 1 * * *", "America/New_York"), date(2026, 11, 1), ["01 01:30 -0400"]),
        # Lord Howe: 02:00 becomes 02:30 on 4 October, 02:00 becomes 01:30 on 5 April.
        (Cron("15 2 * * *", "Australia/Lord_Howe"), date(2026, 10, 4), ["04 02:30 +1100"]),
        (Cron("45 1 * * *", "Australia/Lord_Howe"), date(2026, 4, 5), ["05 01:45 +1100"]),
        # Samoa had no 30 December 2011; midnight of the 31st stands for it.
        (Cron("30 2 * * *", "Pacific/Apia"), date(2011, 12, 30), []),
        (Cron("0 0 * * *", "Pacific/Apia"), date(2011, 12, 31), ["31 00:00 +1400"]),
    ],
    ids=lambda value: str(value) if isinstance(value, Cron) else None,
)
def test_skipped_and_doubled_times_run_as_the_module_says(cron: Cron, day: date, expected: list[str]) -> None:
    assert of_day(cron, day) == expected


def test_a_wildcard_follows_real_time_through_half_an_hour_that_comes_twice() -> None:
    cron = Cron("45 * * * *", "Australia/Lord_Howe")

    found = of_day(cron, date(2026, 4, 5))

    assert found[:4] == ["05 00:45 +1100", "05 01:45 +1100", "05 01:45 +1030", "05 02:45 +1030"]
    assert len(found) == 25


def test_samoas_missing_day_is_made_up_for_once() -> None:
    cron = Cron("30 2 * * *", "Pacific/Apia")
    start, end = datetime(2011, 12, 28, tzinfo=UTC), datetime(2012, 1, 2, tzinfo=UTC)

    assert local(cron, cron.between(start, end, anchor=start)) == [
        "28 02:30 -1000", "29 02:30 -1000", "31 00:00 +1400", "31 02:30 +1400", "01 02:30 +1400", "02 02:30 +1400"
    ]  # fmt: skip


def test_a_year_of_minutes_is_counted_at_once() -> None:
    cron = Cron("* * * * *", "Europe/Berlin")
    start = datetime(2025, 1, 1, tzinfo=UTC)

    assert cron.count(start, start + timedelta(days=365), anchor=start) == 365 * 1440 + 1


def test_a_rare_day_is_found_in_both_directions() -> None:
    cron = Cron("0 12 29 2 *", "UTC")
    moment = datetime(2026, 11, 30, tzinfo=UTC)

    assert cron.latest(moment, anchor=moment) == datetime(2024, 2, 29, 12, tzinfo=UTC)
    assert cron.after(moment, anchor=moment) == datetime(2028, 2, 29, 12, tzinfo=UTC)


def test_one_that_was_never_before_begins_with_its_next_time() -> None:
    cron = Cron("0 0 29 2 */7", "UTC")  # a star in the weekday: both must fit
    moment = datetime(2026, 11, 30, tzinfo=UTC)

    assert cron.latest(moment, anchor=moment) == cron.after(moment, anchor=moment) == datetime(2032, 2, 29, tzinfo=UTC)

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.model.errors import AppError
from sweephand.model.schedule import Every, Schedule, Shifted, make_schedule, shift_of

ANCHOR = datetime(2026, 11, 30, 16, 0, tzinfo=UTC)

moments = st.timedeltas(min_value=timedelta(days=-2), max_value=timedelta(days=2)).map(lambda offset: ANCHOR + offset)
intervals = st.timedeltas(min_value=timedelta(minutes=7), max_value=timedelta(days=1))
grids = st.builds(Every, intervals) | st.builds(
    Shifted, st.builds(Every, intervals), st.timedeltas(timedelta(0), timedelta(minutes=6))
)


def walked(schedule: Schedule, *, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    planned = schedule.after(start - timedelta(microseconds=1), anchor=ANCHOR)
    while planned <= end:
        found.append(planned)
        planned = schedule.after(planned, anchor=ANCHOR)
    return found


def test_the_grid_goes_through_the_anchor_in_both_directions() -> None:
    every_minute = Every(timedelta(seconds=60))

    assert every_minute.after(ANCHOR, anchor=ANCHOR) == ANCHOR + timedelta(seconds=60)
    assert every_minute.after(ANCHOR - timedelta(seconds=1), anchor=ANCHOR) == ANCHOR
    assert every_minute.latest(ANCHOR, anchor=ANCHOR) == ANCHOR
    assert every_minute.latest(ANCHOR - timedelta(seconds=1), anchor=ANCHOR) == ANCHOR - timedelta(seconds=60)


@given(schedule=grids, start=moments, end=moments)
def test_counting_listing_and_walking_agree(schedule: Schedule, start: datetime, end: datetime) -> None:
    listed = list(schedule.between(start, end, anchor=ANCHOR))

    assert listed == sorted(listed, reverse=True)
    assert list(reversed(listed)) == walked(schedule, start=start, end=end)
    assert schedule.count(start, end, anchor=ANCHOR) == len(listed)


@given(schedule=grids, moment=moments)
def test_every_moment_lies_between_the_latest_planned_time_and_the_next(schedule: Schedule, moment: datetime) -> None:
    latest, after = schedule.latest(moment, anchor=ANCHOR), schedule.after(moment, anchor=ANCHOR)

    assert latest <= moment < after
    assert schedule.after(latest, anchor=ANCHOR) == after


def test_years_of_seconds_are_counted_without_walking_them() -> None:
    ten_years = timedelta(days=3650)

    assert Every(timedelta(seconds=1)).count(ANCHOR, ANCHOR + ten_years, anchor=ANCHOR) == 3650 * 86_400 + 1


@given(name=st.text(), jitter=st.timedeltas(timedelta(0), timedelta(days=1)))
def test_a_sweeps_part_of_the_jitter_is_fixed_and_less_than_all_of_it(name: str, jitter: timedelta) -> None:
    shift = shift_of(name, jitter=jitter)

    assert shift == shift_of(name, jitter=jitter)
    assert timedelta(0) <= shift <= jitter


def test_two_sweeps_of_one_interval_get_different_parts_of_the_jitter() -> None:
    jitter = timedelta(seconds=30)

    assert shift_of("tidy/one", jitter=jitter) != shift_of("tidy/two", jitter=jitter)


@pytest.mark.parametrize(
    ("every", "cron", "timezone", "jitter", "words"),
    [
        (timedelta(milliseconds=999), None, "UTC", timedelta(0), "every=0.999 s is under 1 s"),
        (None, None, "UTC", timedelta(0), "exactly one of every"),
        (timedelta(seconds=60), "* * * * *", "UTC", timedelta(0), "exactly one of every"),
        (None, "* * * * * *", "UTC", timedelta(0), "five fields"),
        (None, "61 * * * *", "UTC", timedelta(0), "Bad minute"),
        (None, "0 0 30 2 *", "UTC", timedelta(0), "cannot be read"),
        (None, "0 0 * * *", "Europe/Bärlin", timedelta(0), "IANA name"),
        (None, "0 0 * * *", "../etc/passwd", timedelta(0), "IANA name"),
        (None, "0 0 * * *", "", timedelta(0), "IANA name"),
        (timedelta(seconds=60), None, "UTC", timedelta(seconds=60), "less than the interval"),
        (timedelta(seconds=60), None, "UTC", timedelta(seconds=-1), "from 0"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_the_reason(
    every: timedelta | None, cron: str | None, timezone: str, jitter: timedelta, words: str
) -> None:
    with pytest.raises(AppError, match=words):
        make_schedule(every=every, cron=cron, timezone=timezone, jitter=jitter, name="tidy/one", owner="sweep one")

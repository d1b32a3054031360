"""Lay the grid of a sweep's ticks: at an interval from an anchor, or by a cron expression in a time zone.

A grid is a set of moments, known from the table alone, so restarts and rollouts never shift it. `cron.py` says what changes of
daylight saving do to a cron expression.
"""

import hashlib
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from cronsim import CronSim, CronSimError

from sweephand.model.cron import Cron
from sweephand.model.errors import AppError

MIN_INTERVAL = timedelta(seconds=1)


class Schedule(Protocol):
    """Know the planned times of a sweep. All datetimes are aware UTC."""

    def latest(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the planned time whose period contains `moment`; `anchor` is when the sweep was first registered."""
        ...

    def after(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the first planned time later than `moment`."""
        ...

    def between(self, start: datetime, end: datetime, *, anchor: datetime) -> Iterator[datetime]:
        """Yield the planned times t with start <= t <= end, latest first."""
        ...

    def count(self, start: datetime, end: datetime, *, anchor: datetime) -> int:
        """Return how many planned times t have start <= t <= end."""
        ...

    def __str__(self) -> str:
        """Return the schedule as people read it, such as `every 60 s`; the sweep table stores it."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """Tick at anchor + n × interval."""

    interval: timedelta

    def latest(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the last planned time at or before `moment`."""
        return anchor + ((moment - anchor) // self.interval) * self.interval

    def after(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the first planned time later than `moment`."""
        return self.latest(moment, anchor=anchor) + self.interval

    def between(self, start: datetime, end: datetime, *, anchor: datetime) -> Iterator[datetime]:
        """Yield the planned times in [start, end], latest first."""
        planned = self.latest(end, anchor=anchor)
        while planned >= start:
            yield planned
            planned -= self.interval

    def count(self, start: datetime, end: datetime, *, anchor: datetime) -> int:
        """Return how many planned times lie in [start, end], without walking them."""
        return max(0, (end - anchor) // self.interval - -((anchor - start) // self.interval) + 1)

    def __str__(self) -> str:
        """Return for example `every 60 s`."""
        return f"every {self.interval.total_seconds():g} s"


@dataclass(frozen=True, slots=True)
class Shifted:
    """Be another schedule, every planned time later by a fixed amount."""

    schedule: Schedule
    by: timedelta

    def latest(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the shifted planned time whose period contains `moment`."""
        return self.schedule.latest(moment - self.by, anchor=anchor) + self.by

    def after(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the first shifted planned time later than `moment`."""
        return self.schedule.after(moment - self.by, anchor=anchor) + self.by

    def between(self, start: datetime, end: datetime, *, anchor: datetime) -> Iterator[datetime]:
        """Yield the shifted planned times in [start, end], latest first."""
        for planned in self.schedule.between(start - self.by, end - self.by, anchor=anchor):
            yield planned + self.by

    def count(self, start: datetime, end: datetime, *, anchor: datetime) -> int:
        """Return how many shifted planned times lie in [start, end]."""
        return self.schedule.count(start - self.by, end - self.by, anchor=anchor)

    def __str__(self) -> str:
        """Return for example `every 60 s, shifted by 12.5 s`."""
        return f"{self.schedule}, shifted by {self.by.total_seconds():g} s"


def shift_of(name: str, *, jitter: timedelta) -> timedelta:
    """Return a part of `jitter` that depends on `name` only, in whole milliseconds.

    The same on every replica and after every restart, so that jitter spreads many sweeps without moving any one's grid.
    """
    fraction = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64
    return timedelta(milliseconds=int(fraction * (jitter / timedelta(milliseconds=1))))


def make_schedule(
    *, every: timedelta | None, cron: str | None, timezone: str, jitter: timedelta, name: str, owner: str
) -> Schedule:
    """Return the schedule that a sweep's decorator asks for; `name` decides its part of the jitter.

    Raises:
        AppError: neither or both of `every` and `cron`, an interval under 1 s, a bad expression, an unknown time zone, or a
            jitter that is negative or longer than the interval.
    """
    if jitter < timedelta(0) or (every is not None and jitter >= every):
        raise AppError(f"{owner}: jitter={jitter}; give a time from 0 to less than the interval")
    schedule = _unshifted(every=every, cron=cron, timezone=timezone, owner=owner)
    return Shifted(schedule, shift_of(name, jitter=jitter)) if jitter else schedule


def _unshifted(*, every: timedelta | None, cron: str | None, timezone: str, owner: str) -> Schedule:
    if every is not None and cron is None:
        if every < MIN_INTERVAL:
            raise AppError(f"{owner}: every={every.total_seconds():g} s is under 1 s; a sweep is not a loop, use 1 s or more")
        return Every(every)
    if cron is None or every is not None:
        raise AppError(f"{owner}: needs exactly one of every=timedelta(…) and cron='…'")
    try:
        zoneinfo.ZoneInfo(timezone)
        next(CronSim(_five_fields(cron), datetime(2026, 1, 1, tzinfo=UTC)))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise AppError(f"{owner}: timezone={timezone!r} is not known here; use an IANA name such as Europe/Berlin") from error
    except (CronSimError, StopIteration) as error:
        raise AppError(f"{owner}: cron={cron!r} cannot be read ({error}); five fields: minute hour day month weekday") from error
    return Cron(cron, timezone)


def _five_fields(expression: str) -> str:
    """Return the expression; refuse the sixth field (seconds) that cronsim would take."""
    if len(expression.split()) != 5:
        raise CronSimError(f"{len(expression.split())} fields")
    return expression

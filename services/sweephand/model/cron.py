"""Lay the grid of a cron expression in a time zone. cronsim reads the expression; what a day's moments are is decided here.

Daylight saving, as Debian's cron has it. An expression whose minute or hour field starts with a star follows real time: it
ticks whenever the wall clock shows a matching time, so a wall-clock time that a change skips has no tick, and one that comes
twice has two. Any other expression names times of the day, and each has one tick a day: one that is skipped runs at the first
moment after the gap, one that comes twice at its first occurrence.
"""

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from cronsim import CronSim, CronSimError

# Beyond it cronsim gives an expression up too: 29 February on a fifth Monday comes within 40 years.
_DAYS_BOUND = 366 * 50
_FIRST_DAYS_BOUND = 366 * 8
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """Tick at the wall-clock times of a five-field cron expression in a time zone. All datetimes are aware UTC.

    Each day of the time zone is worked out by itself, so the grid cannot depend on where one starts to look, nor on the
    direction, and a look costs no more than the days that it covers.
    """

    expression: str
    timezone: str

    def latest(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the last planned time at or before `moment`, or the first one after it if none lies in the 8 years before."""
        earlier = next(self.between(moment - timedelta(days=_FIRST_DAYS_BOUND), moment, anchor=anchor), None)
        return self.after(moment, anchor=anchor) if earlier is None else earlier

    def after(self, moment: datetime, *, anchor: datetime) -> datetime:
        """Return the first planned time later than `moment`."""
        del anchor
        days = self._days()
        today = days.of(moment)
        # A change may have moved a tick of the day before past midnight.
        for number in range(-1 if days.has_change(today - _DAY) else 0, _DAYS_BOUND):
            for planned in days.moments(today + number * _DAY):
                if planned > moment:
                    return planned
        raise CronSimError(f"{self.expression} has no tick within 50 years")  # make_schedule has refused it

    def between(self, start: datetime, end: datetime, *, anchor: datetime) -> Iterator[datetime]:
        """Yield the planned times in [start, end], latest first."""
        del anchor
        days = self._days()
        day, last_day = days.of(end), days.of(start) - _DAY
        previous: datetime | None = None
        while day >= last_day:
            for planned in reversed(days.moments(day)):
                if start <= planned <= end and planned != previous:
                    yield planned
                    previous = planned
            day -= _DAY

    def count(self, start: datetime, end: datetime, *, anchor: datetime) -> int:
        """Return how many planned times lie in [start, end], without walking through whole days."""
        del anchor
        days = self._days()
        first_day, last_day = days.of(start), days.of(end)
        total, previous = 0, None
        for number in range(-1, (last_day - first_day).days + 1):
            day = first_day + number * _DAY
            if first_day < day < last_day and not days.has_change(day - _DAY) and not days.has_change(day):
                total += days.count(day)
                continue
            for planned in days.moments(day):
                if start <= planned <= end and planned != previous:
                    total, previous = total + 1, planned
        return total

    def __str__(self) -> str:
        """Return for example `cron 30 2 * * * Europe/Berlin`."""
        return f"cron {self.expression} {self.timezone}"

    def _days(self) -> "_Days":
        return _Days(CronSim(self.expression, datetime(2000, 1, 1, tzinfo=UTC)), zoneinfo.ZoneInfo(self.timezone))


@dataclass(frozen=True, slots=True)
class _Days:
    """Know the moments of each day of a time zone."""

    fields: CronSim
    zone: zoneinfo.ZoneInfo

    def of(self, moment: datetime) -> date:
        """Return the day that `moment` belongs to."""
        return moment.astimezone(self.zone).date()

    def moments(self, day: date) -> list[datetime]:
        """Return the planned times of the day in UTC, in their order."""
        if not self._matches(day):
            return []
        midnight = datetime.combine(day, time(), tzinfo=self.zone)
        times = [
            timedelta(hours=hour, minutes=minute) for hour in sorted(self.fields.hours) for minute in sorted(self.fields.minutes)
        ]
        if not self.has_change(day):
            begin = midnight.astimezone(UTC)
            return [begin + wall for wall in times]
        found: set[datetime] = set()
        for wall in times:
            found.update(self._all(midnight + wall) if self._is_real_time else [self._one(midnight + wall)])
        return sorted(found)

    def count(self, day: date) -> int:
        """Return how many planned times a day without a change has."""
        return len(self.fields.hours) * len(self.fields.minutes) if self._matches(day) else 0

    def has_change(self, day: date) -> bool:
        """Tell whether the zone's offset changes on this day."""
        midnight = datetime.combine(day, time(), tzinfo=self.zone)
        return midnight.replace(fold=0).utcoffset() != (midnight + _DAY).replace(fold=1).utcoffset()

    def _matches(self, day: date) -> bool:
        return day.month in self.fields.months and self.fields.match_day(day)

    @property
    def _is_real_time(self) -> bool:
        minute, hour = self.fields.parts[1:3]
        return minute.startswith("*") or hour.startswith("*")

    def _all(self, wall: datetime) -> list[datetime]:
        """Return the moments at which the wall clock shows `wall`: none in a gap, two in an hour that comes twice."""
        moments = [wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
        return [moment for moment in moments if moment.astimezone(self.zone).replace(tzinfo=None) == wall.replace(tzinfo=None)]

    def _one(self, wall: datetime) -> datetime:
        """Return the first moment at which the wall clock shows `wall` or, after a gap, a later time."""
        while not self._all(wall):
            wall += _MINUTE
        return min(self._all(wall))

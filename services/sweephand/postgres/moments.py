"""Bring moments from the session's time zone to UTC."""

from datetime import UTC, datetime


def utc(moment: datetime) -> datetime:
    """Return the same moment in UTC.

    PostgreSQL answers in the session's time zone, and Python adds to such a datetime in wall-clock time: across a change of
    daylight saving an hour would be lost.
    """
    return moment.astimezone(UTC)

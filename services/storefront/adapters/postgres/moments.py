"""Moments as PostgreSQL hands them out, and as the shop has them."""

from datetime import UTC, datetime


def utc(moment: datetime) -> datetime:
    """Return the moment in UTC: PostgreSQL hands it out in the server's time zone."""
    return moment.astimezone(UTC)

"""Bring moments from the session's time zone to UTC."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from psycopg.rows import BaseRowFactory, RowMaker

T = TypeVar("T")


def utc(moment: datetime) -> datetime:
    """Return the same moment in UTC.

    PostgreSQL answers in the session's time zone, and Python adds to such a datetime in wall-clock time: across a change of
    daylight saving an hour would be lost.
    """
    return moment.astimezone(UTC)


def utc_row(made: Callable[..., T]) -> BaseRowFactory[T]:
    """Return a row factory that calls `made` with the columns by name, all moments in UTC."""

    def factory(cursor: object) -> RowMaker[T]:
        description = getattr(cursor, "description", None) or ()
        names = [str(column.name) for column in description]

        def make(values: Sequence[object]) -> T:
            return made(**{name: _in_utc(value) for name, value in zip(names, values, strict=True)})

        return make

    return factory


def _in_utc(value: object) -> object:
    return utc(value) if isinstance(value, datetime) else value

"""Give each value its one JSON form, or say at which path it cannot be stored.

What counts as equal arguments decides which jobs are duplicates, so one value has one form: whole floats are written without a
fraction, datetimes as UTC with six fractional digits, object keys in the order that jsonb gives them. postgres/scan.py gives
the very same forms to the columns of a sweep.
"""

import dataclasses
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

from pydantic import BaseModel, RootModel

from sweephand.model.errors import ArgumentsError

INTEGER_BOUND = 2**63
_EXACT_BOUND = 10**16  # below it a whole float's shortest digits are those of the integer that it equals


def canonical(value: object, *, path: str) -> object:
    """Return the one JSON form of `value`.

    Raises:
        ArgumentsError: NaN, an infinity, an integer beyond 64 bits, NUL or a lone surrogate in a text, a naive datetime or
            a type that JSON cannot carry; the message starts with the path of the value.
    """
    match value:
        case None | bool():
            return value
        case Enum():
            return canonical(value.value, path=path)
        case int() | float() | str() | UUID() | date():
            return _canonical_scalar(value, path)
        case RootModel():
            return canonical(value.root, path=path)
        case BaseModel():
            return canonical(dict(value), path=path)
        case Mapping():
            return {_key(key, path): canonical(item, path=f"{path}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [canonical(item, path=f"{path}[{index}]") for index, item in enumerate(value)]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return canonical(fields, path=path)
        case _:
            raise ArgumentsError(f"{path}: {type(value).__name__} is no JSON type; pass its id or a plain value")


def _canonical_scalar(value: int | float | str | UUID | date, path: str) -> int | float | str:  # noqa: PYI041 (match needs both)
    match value:
        case int():
            if not -INTEGER_BOUND <= value < INTEGER_BOUND:
                raise ArgumentsError(f"{path}: an integer of {value.bit_length()} bits; 64 bits with sign is the most")
            return int(value)
        case float():
            return _canonical_float(value, path)
        case str():
            return _storable_text(value, path)
        case UUID():
            return str(value)
        case datetime():
            if value.utcoffset() is None:
                raise ArgumentsError(f"{path}: {value.isoformat()} has no time zone; pass an aware datetime")
            return _canonical_datetime(value, path)
        case date():
            return value.isoformat()


def _canonical_datetime(value: datetime, path: str) -> str:
    try:
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError as error:
        raise ArgumentsError(f"{path}: {value.isoformat()} is outside of the years 1 to 9999 in UTC") from error


def _canonical_float(value: float, path: str) -> int | float:
    if not math.isfinite(value):
        raise ArgumentsError(f"{path}: {value} cannot be stored as JSON; pass None or a finite number")
    return _digits_as_integer(value) if value.is_integer() else value


def _digits_as_integer(value: float) -> int:
    """Return a whole float's shortest digits as PostgreSQL chooses them, filled up with zeros.

    Both Python and PostgreSQL write the fewest digits that read back as the same float. Half-way between two floats stands
    sometimes a shorter number, which rounds to the even one of them: Python takes it, PostgreSQL does not.

    Source: PostgreSQL, src/common/d2s.c (acceptBounds is false).
    """
    exact = int(value)
    if abs(exact) < _EXACT_BOUND:
        return exact
    magnitude = abs(exact)
    down = magnitude - int(math.nextafter(abs(value), 0))
    above = math.nextafter(abs(value), math.inf)
    up = int(above) - magnitude if math.isfinite(above) else down
    shortest = len(str(int(Decimal(repr(abs(value))))).rstrip("0"))
    for digits in range(shortest, 18):
        candidate = int(Decimal(f"{abs(value):.{digits - 1}e}"))
        if -down < 2 * (candidate - magnitude) < up:
            return candidate if value > 0 else -candidate
    return exact


def _storable_text(value: str, path: str) -> str:
    if "\0" in value:
        raise ArgumentsError(f"{path}: a NUL character at {value.index(chr(0))}; PostgreSQL cannot store it, remove it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentsError(f"{path}: a lone surrogate at {error.start}; decode the text properly first") from error
    return value


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise ArgumentsError(f"{path}: the key {key!r} is no text; JSON objects have text keys only")
    return _storable_text(key, f"{path} (key)")

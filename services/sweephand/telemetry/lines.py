"""What both forms of a log line share: the time, plain values, and JSON."""

import json
from datetime import UTC, date, datetime, timedelta
from enum import Enum

from structlog.typing import EventDict, WrappedLogger

# Keys that begin so are for the renderer and never written.
_PRIVATE = "_"


def render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """Return the line as one JSON object: timestamp, level, event, and then the facts under their own keys."""
    first = {key: event[key] for key in ("timestamp", "level", "event") if key in event}
    facts = {key: value for key, value in event.items() if key not in first and not key.startswith(_PRIVATE)}
    # ASCII only: a lone surrogate in an error's text is escaped and cannot break the stream.
    return json.dumps({**first, **facts}, default=plain)


def iso_utc(moment: datetime, *, timespec: str = "auto") -> str:
    """Return a moment as `2026-11-30T16:00:00.123Z`; a naive one is taken as UTC."""
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def plain(value: object) -> object:
    """Return a value that JSON knows for one that it does not."""
    match value:
        case datetime():
            return iso_utc(value, timespec="milliseconds" if value.microsecond else "seconds")
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Enum():
            return value.value
        case set() | frozenset():
            return sorted(value, key=str)
        case _:
            return str(value)

"""Write answers: JSON for programs, and the words for moments and spans of time that people read."""

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum

import click

# C0, DEL, C1 and what turns the direction of writing: stored text must not steer the reader's terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ID_FIELDS = frozenset({"id", "made_up_by"})


def write_json(**document: object) -> None:
    """Write one JSON document to standard output.

    Ids are strings in it, since they pass 2^53, where many JSON readers round; moments are ISO 8601 in UTC, spans seconds.
    """
    click.echo(json.dumps(_plain(document), ensure_ascii=False, indent=2))


def utc_text(moment: datetime) -> str:
    """Return `2026-11-30 16:00:00Z`."""
    return _iso(moment, timespec="seconds").replace("T", " ")


def span_text(span: timedelta) -> str:
    """Return a span in its two largest units: `3m 5s`, `2h`, `12s`; below a second `40ms`."""
    milliseconds = round(abs(span.total_seconds()) * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    seconds = milliseconds // 1000
    if seconds < 10 and milliseconds % 1000 >= 100:
        return f"{milliseconds / 1000:.1f}s"
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    first = next(index for index, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number}{unit}" for number, unit in parts[first : first + 2] if number)


def relative_text(moment: datetime, *, now: datetime) -> str:
    """Return `in 12s` or `3m 5s ago`, in whole seconds."""
    seconds = round((moment - now).total_seconds())
    if seconds == 0:
        return "now"
    span = span_text(timedelta(seconds=seconds))
    return f"in {span}" if seconds > 0 else f"{span} ago"


def both_texts(moment: datetime, *, now: datetime) -> str:
    """Return a moment in both ways: `in 12s (2026-11-30 16:00:00Z)`."""
    return f"{relative_text(moment, now=now)} ({utc_text(moment)})"


def printable(text: str) -> str:
    r"""Return the text in one line, control characters as `\x1b`."""
    return _CONTROL.sub(_escaped, " ".join(text.split()) if "\n" in text or "\t" in text else text)


def printable_lines(text: str) -> list[str]:
    r"""Return the lines of a text, control characters as `\x1b`."""
    return [_CONTROL.sub(_escaped, line.expandtabs(4)) for line in text.split("\n")]


def args_text(args: Mapping[str, object]) -> str:
    """Return a job's arguments as logs show them: `product_id=9 name="a b"`."""
    return printable(" ".join(f"{name}={_value_text(value)}" for name, value in args.items()))


def _value_text(value: object) -> str:
    if isinstance(value, str) and value and not re.search(r"[\s\"'=]", value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _iso(moment: datetime, *, timespec: str) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _plain(value: object) -> object:
    match value:
        case datetime():
            return _iso(value, timespec="microseconds")
        case timedelta():
            return value.total_seconds()
        case Enum():
            return value.value
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {name: _plain(_id(name, item)) for name, item in fields.items()}
        case _:
            return value


def _id(name: str, value: object) -> object:
    is_id = name in _ID_FIELDS or name.endswith("_id")
    return str(value) if is_id and isinstance(value, int) else value

"""The form of a log line that people read.

2026-11-30T16:00:00.123Z info dispatched sweep=stuck_publications enqueued=3 skipped_duplicates=0
2026-11-30T16:00:01.004Z info job=53 kind=publish_product attempt=1 product_id=9: started
2026-11-30T16:00:02.951Z warning job=53 kind=publish_product attempt=1: failed retry_in_seconds=1 error="no stock"
"""

import json
import re

from structlog.typing import EventDict, Processor, WrappedLogger

from sweephand.telemetry.lines import plain

_BARE = re.compile(r"[^\s\"'=\x00-\x1f\x7f\ud800-\udfff]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_SHOWN_APART = frozenset({"timestamp", "level", "event", "exception", "_bound"})
_JOB_KEYS = ("job", "kind", "attempt")
_RESET, _DIM, _BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"
_LEVEL_COLOURS = {
    "debug": "\x1b[2m",
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}


def render_console(*, is_coloured: bool) -> Processor:
    """Return the renderer of the console form."""

    def render(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
        return render_line(event, is_coloured=is_coloured)

    return render


def render_line(event: EventDict, *, is_coloured: bool) -> str:
    """Return one line; a traceback follows on lines of its own.

    A line about a job begins with what was bound: the job and its arguments. Any other begins with the event.
    """
    bound = event.get("_bound", ())
    # Context variables come in no particular order, so the job's own names are put first here.
    keys = dict.fromkeys((*_JOB_KEYS, *bound)) if "job" in bound else ()
    subject = [key for key in keys if key in bound and key in event]
    facts = [f"{key}={_value(event[key])}" for key in event if key not in _SHOWN_APART and key not in subject]
    level = str(event.get("level", "info"))
    name = _CONTROL.sub(_escape, str(event.get("event", "")))
    time = str(event.get("timestamp", ""))
    about = " ".join([f"{key}={_value(event[key])}" for key in subject]) + ": " if subject else ""
    if is_coloured:
        time = f"{_DIM}{time}{_RESET}"
        level = f"{_LEVEL_COLOURS.get(level, '')}{level}{_RESET}"
        name = f"{_BOLD}{name}{_RESET}"
    line = " ".join([time, level, about + name, *facts])
    traceback = event.get("exception")
    return f"{line}\n{str(traceback).encode(errors='backslashreplace').decode()}" if traceback else line


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return f"{value:.6g}" if abs(value) < 1_000_000 else f"{value:.3f}"
        case int():
            return str(value)
        case str():
            text = str(value)
        case list() | tuple() | dict():
            text = json.dumps(value, default=plain)
        case _:
            text = str(plain(value))
    return text if _BARE.fullmatch(text) else _CONTROL.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape", errors="backslashreplace").decode("ascii")

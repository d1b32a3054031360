"""Send every log line of the process, structlog's and the standard library's, through one renderer to one stream."""

import logging
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from sweephand.settings import LogFormat, Settings
from sweephand.telemetry.console import render_console
from sweephand.telemetry.lines import iso_utc, render_json

# Each of these writes a line per renewal, probe, request or statement at info; what they warn of still comes through.
_QUIET_LOGGERS = (
    "kopf.objects",
    "kopf.activities.probe",
    "aiohttp.access",
    "uvicorn.error",
    "uvicorn.access",
    "alembic",
    "sqlalchemy",
    "httpx",
    "httpcore",
    "asyncio",
)
BOUND_KEYS = "_bound"


def configure_logging(settings: Settings, *, stream: TextIO | None = None) -> None:
    """Configure structlog and the root logger for this process; called once, by the command.

    Lines go to stderr, or to `stream`: standard output belongs to what a command answers.
    """
    target = sys.stderr if stream is None else stream
    level = logging.getLevelNamesMapping()[settings.log_level.value.upper()]
    processors = _processors(settings.log_format, is_coloured=_is_coloured(target))
    structlog.configure(
        processors=processors,
        wrapper_class=_logger_class(level),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        # A cached logger would keep an earlier configuration's stream; what logs often binds, and so resolves it once.
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_StructlogHandler()]
    root.setLevel(level)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _processors(log_format: LogFormat, *, is_coloured: bool) -> Sequence[Processor]:
    match log_format:
        case LogFormat.JSON:
            return [_complete, render_json]
        case LogFormat.CONSOLE:
            return [_complete, render_console(is_coloured=is_coloured)]


def _logger_class(level: int) -> type[structlog.typing.FilteringBoundLogger]:
    """Return a logger class that drops what is below the level and remembers which keys were bound.

    The console form sets a job's bound facts before the event and the event's own after it; structlog merges the two
    before its processors see them.
    """
    filtering = structlog.make_filtering_bound_logger(level)

    class BoundLogger(filtering):  # type: ignore[valid-type, misc]  # structlog makes the base class at run time
        def _process_event(
            self, method_name: str, event: str | None, event_kw: dict[str, object]
        ) -> tuple[Sequence[object], dict[str, object]]:
            bound = tuple(self._context)
            processed: tuple[Sequence[object], dict[str, object]] = super()._process_event(
                method_name, event, {**event_kw, BOUND_KEYS: bound}
            )
            return processed

    return BoundLogger


def _complete(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Add what every line has: the level, the time, the traceback, and what `structlog.contextvars` has bound.

    One function for all: a line is written before each job starts.
    """
    context = structlog.contextvars.get_contextvars()
    if context:
        # The job that runs here stands before the line's own facts.
        event = {**context, **event, BOUND_KEYS: (*context, *event.get(BOUND_KEYS, ()))}
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, method, event)
    event["level"] = method
    event["timestamp"] = iso_utc(datetime.now(UTC), timespec="milliseconds")
    return event


def _is_coloured(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ


class _StructlogHandler(logging.Handler):
    """Hand the standard library's records to structlog, so that both come out in one form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. Never raises: a log line must not end what it tells of."""
        try:
            level = record.levelno if record.levelno in _LEVEL_NUMBERS else _nearest_level(record.levelno)
            structlog.get_logger().log(level, record.getMessage(), logger=record.name, exc_info=record.exc_info or None)
        except Exception:  # noqa: BLE001 - the standard library's own convention for handlers
            self.handleError(record)


_LEVEL_NUMBERS = frozenset({logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL})


def _nearest_level(number: int) -> int:
    return max((level for level in _LEVEL_NUMBERS if level <= number), default=logging.DEBUG)

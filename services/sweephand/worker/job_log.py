"""Log what jobs do: two lines for a job, as long as somebody could read them."""

import time
from collections.abc import Mapping
from datetime import date
from enum import Enum
from threading import Lock
from uuid import UUID

import structlog

from sweephand.worker.attempts import Attempt
from sweephand.worker.verdicts import Verdict

# Two lines cost more than a job that does nothing; nobody reads a hundred of them a second.
JOBS_PER_SECOND = 50
_FACTS = (int, UUID, date, Enum)


class JobLog:
    """Log the start and the end of attempts. Thread-safe.

    A line names the job and those of its arguments that are numbers, UUIDs, booleans, dates or members of an enum: texts
    could hold what must not be in a log. Of jobs that complete, no more than JOBS_PER_SECOND a second are told of one
    by one; the rest is summed up once a second, by kind. Failures are always told.
    """

    def __init__(self) -> None:
        # Bound, and so resolved, once: the first line of an attempt is written before the job starts.
        self._logger: structlog.stdlib.BoundLogger = structlog.get_logger().bind()
        self._lock = Lock()
        self._second = 0
        self._told = 0
        self._summed: dict[str, int] = {}
        self._summed_since = time.monotonic()

    def started(self, attempt: Attempt, arguments: Mapping[str, object]) -> None:
        """Log that an attempt starts, unless many do."""
        second = int(attempt.started)
        if second != self._second:
            self._second, self._told = second, 0
        self._told += 1
        if self._told <= JOBS_PER_SECOND:
            attempt.is_logged = True
            attempt.log_facts = {name: value for name, value in arguments.items() if _is_fact(value)}
            tick_id = attempt.claimed.tick_id
            self._bound(attempt).info("started", **({} if tick_id is None else {"tick": tick_id}))

    def completed(self, attempt: Attempt) -> None:
        """Log that an attempt completed, if its start was told of."""
        if attempt.is_logged:
            self._bound(attempt).info("completed", seconds=round(attempt.ended - attempt.started, 3))

    def count_untold(self, kind: str, *, jobs: int) -> None:
        """Count jobs that completed untold, for the summary."""
        if jobs:
            with self._lock:
                self._summed[kind] = self._summed.get(kind, 0) + jobs

    def ended(self, attempt: Attempt, verdict: Verdict) -> None:
        """Log any other end of an attempt."""
        attempt.is_logged = True
        log = self._bound(attempt)
        seconds = round(attempt.ended - attempt.started, 3)
        match verdict.outcome.value:
            case "retried":
                log.warning("failed", retry_in_seconds=_rounded(verdict.delay_seconds), error=verdict.error)
            case "discarded":
                log.error("discarded", seconds=seconds, error=verdict.error)
            case "snoozed":
                log.info("snoozed", seconds=seconds, again_in_seconds=_rounded(verdict.delay_seconds))
            case outcome:
                log.info(outcome, seconds=seconds, reason=verdict.error)

    def sum_up(self) -> None:
        """Log how many jobs completed untold; to be called about once a second, and at the end."""
        now = time.monotonic()
        elapsed = now - self._summed_since
        with self._lock:
            summed, self._summed = self._summed, {}
            self._summed_since = now
        for kind, jobs in summed.items():
            structlog.get_logger().info("more_jobs_completed", kind=kind, jobs=jobs, seconds=round(elapsed, 3))

    def _bound(self, attempt: Attempt) -> structlog.stdlib.BoundLogger:
        claimed = attempt.claimed
        return self._logger.bind(job=claimed.job_id, kind=claimed.kind, attempt=claimed.attempt, **attempt.log_facts)


def _is_fact(value: object) -> bool:
    return isinstance(value, _FACTS)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)

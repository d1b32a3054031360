"""Learn what became of jobs that completed themselves, before anything is written about their attempts."""

import logging
from collections.abc import Sequence

import psycopg
import structlog

from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.completion import completions
from sweephand.worker.attempts import Attempt


def settle_completions(conn: psycopg.Connection, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    """Return the attempts whose end is still to be written: all but those whose own transaction has or may have the say.

    An attempt that committed its completion is completed, whatever its function did then. One that rolled it back ends as
    its function ended. One whose function left the transaction open is not waited for: that transaction decides, or the
    rescue after the time limit.
    """
    completing = [attempt for attempt in attempts if attempt.is_completing]
    if not completing:
        return attempts
    found = completions(conn, [attempt.held for attempt in completing])
    settled: set[Attempt] = set()
    for attempt in completing:
        if attempt.claimed.job_id in found.committed:
            _settle_committed(attempt)
            settled.add(attempt)
        elif attempt.claimed.job_id in found.open:
            _log(attempt).warning("completion_left_open")
            attempt.finished = None
            settled.add(attempt)
        elif attempt.tell_end is not None:
            attempt.tell_end()
            attempt.tell_end = None
    return [attempt for attempt in attempts if attempt not in settled]


def _settle_committed(attempt: Attempt) -> None:
    finished = attempt.finished
    if finished is None or finished.outcome is AttemptOutcome.COMPLETED:
        return
    has_failed = finished.outcome in {AttemptOutcome.RETRIED, AttemptOutcome.DISCARDED}
    _log(attempt).log(logging.ERROR if has_failed else logging.INFO, "raised_after_completion", error=finished.error)
    attempt.finished = finished._replace(outcome=AttemptOutcome.COMPLETED)
    attempt.discard_reason = None


def _log(attempt: Attempt) -> structlog.stdlib.BoundLogger:
    claimed = attempt.claimed
    log: structlog.stdlib.BoundLogger = structlog.get_logger().bind(
        job=claimed.job_id, kind=claimed.kind, attempt=claimed.attempt
    )
    return log

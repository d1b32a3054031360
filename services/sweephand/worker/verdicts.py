"""Decide how an attempt ended from what its function did."""

import math
from datetime import timedelta
from typing import NamedTuple

from sweephand.job import Job
from sweephand.model.backoff import MAX_BACKOFF_SECONDS, backoff_seconds
from sweephand.model.outcomes import AttemptOutcome, CancelJob, DiscardJob, RetryJob, Snooze
from sweephand.telemetry import DiscardReason
from sweephand.worker.attempts import Attempt, Interruption
from sweephand.worker.failures import error_text, storable, traceback_text

_ERROR_CHARACTERS = 4_096


class Verdict(NamedTuple):
    """How the attempt ended, and what is kept of the reason."""

    outcome: AttemptOutcome
    delay_seconds: float | None = None
    error: str | None = None
    traceback: str | None = None
    discard_reason: DiscardReason | None = None


def verdict_on(attempt: Attempt, error: BaseException, *, skip_frames: int) -> Verdict:
    """Return what an exception out of the job's function means.

    Whatever an interrupted job raises, the interruption is what it means: it was told to end.
    """
    match attempt.interruption, error:
        case Interruption.SHUTDOWN, _:
            return Verdict(AttemptOutcome.INTERRUPTED, error="interrupted by the worker's shutdown")
        case Interruption.CANCELLED, _:
            return Verdict(AttemptOutcome.CANCELLED, error=storable(attempt.reason, limit=_ERROR_CHARACTERS))
        case Interruption.TIMED_OUT, _:
            timeout = f"timed out after {attempt.claimed.timeout_seconds:g} s"
            return _failed(attempt, timeout, traceback_text(error, skip_frames=skip_frames))
        case None, Snooze(delay=delay):
            return Verdict(AttemptOutcome.SNOOZED, delay_seconds=_bounded(delay), error=error_text(error))
        case None, CancelJob():
            return Verdict(AttemptOutcome.CANCELLED, error=storable(str(error), limit=_ERROR_CHARACTERS))
        case None, DiscardJob():
            return Verdict(
                AttemptOutcome.DISCARDED,
                error=storable(str(error), limit=_ERROR_CHARACTERS),
                discard_reason=DiscardReason.REQUESTED,
            )
        case None, RetryJob(delay=timedelta() as delay):
            return _failed(attempt, error_text(error), None, delay_seconds=_bounded(delay))
        case _:
            return _failed(attempt, error_text(error), traceback_text(error, skip_frames=skip_frames))


def verdict_on_arguments(error: Exception) -> Verdict:
    """Return what stored arguments that the job cannot take mean: no attempt will do better, so somebody must look."""
    return Verdict(
        AttemptOutcome.DISCARDED,
        error=error_text(error),
        traceback=traceback_text(error, skip_frames=1),
        discard_reason=DiscardReason.ARGUMENTS,
    )


def _failed(attempt: Attempt, error: str, traceback: str | None, *, delay_seconds: float | None = None) -> Verdict:
    claimed = attempt.claimed
    if claimed.attempt >= claimed.max_attempts:
        return Verdict(AttemptOutcome.DISCARDED, error=error, traceback=traceback, discard_reason=DiscardReason.MAX_ATTEMPTS)
    if delay_seconds is None:
        delay_seconds = _backoff(attempt.job, claimed.attempt)
    return Verdict(AttemptOutcome.RETRIED, delay_seconds=delay_seconds, error=error, traceback=traceback)


def _backoff(job: Job[...], attempt: int) -> float:
    """Return the job's own backoff, or the usual one if its function fails or returns nonsense."""
    try:
        seconds = float(job.backoff(attempt))
    except Exception:  # noqa: BLE001 - an application's function: its failure must not lose the outcome
        return backoff_seconds(attempt)
    return min(max(seconds, 0.0), MAX_BACKOFF_SECONDS) if math.isfinite(seconds) else backoff_seconds(attempt)


def _bounded(delay: timedelta) -> float:
    return min(max(delay.total_seconds(), 0.0), MAX_BACKOFF_SECONDS)

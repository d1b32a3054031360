from datetime import timedelta

import pytest

from sweephand import App, CancelJob, DiscardJob, RetryJob, Snooze
from sweephand.model.backoff import MAX_BACKOFF_SECONDS
from sweephand.model.outcomes import AttemptOutcome
from sweephand.telemetry import DiscardReason
from sweephand.worker.attempts import Interruption
from sweephand.worker.verdicts import verdict_on
from tests.worker.attempts import make_attempt


@pytest.mark.parametrize(
    ("error", "outcome", "delay_seconds", "text"),
    [
        (Snooze(timedelta(minutes=2)), AttemptOutcome.SNOOZED, 120.0, "Snooze: snoozed for 120 s"),
        (Snooze(timedelta(days=-1)), AttemptOutcome.SNOOZED, 0.0, "Snooze: snoozed for -86400 s"),
        (Snooze(timedelta(days=10_000)), AttemptOutcome.SNOOZED, MAX_BACKOFF_SECONDS, "Snooze: snoozed for 8.64e+08 s"),
        (CancelJob("sold out"), AttemptOutcome.CANCELLED, None, "sold out"),
        (DiscardJob("nonsense"), AttemptOutcome.DISCARDED, None, "nonsense"),
        (RetryJob(timedelta(seconds=5)), AttemptOutcome.RETRIED, 5.0, "RetryJob: asked for a retry in 5 s"),
    ],
)
def test_a_signal_means_what_it_says(error: Exception, outcome: AttemptOutcome, delay_seconds: float | None, text: str) -> None:
    verdict = verdict_on(make_attempt(), error, skip_frames=0)

    assert (verdict.outcome, verdict.delay_seconds, verdict.error) == (outcome, delay_seconds, text)
    assert verdict.traceback is None


def test_a_retry_without_a_delay_waits_as_the_job_says() -> None:
    @App("test").job(backoff=lambda attempt: attempt * 100.0)
    def patient() -> None:
        """Wait long."""

    verdict = verdict_on(make_attempt(patient, attempt=3), RetryJob(), skip_frames=0)

    assert (verdict.outcome, verdict.delay_seconds) == (AttemptOutcome.RETRIED, 300.0)


@pytest.mark.parametrize("error", [ValueError("no"), RetryJob(timedelta(seconds=5))])
def test_the_last_attempt_that_fails_discards_the_job(error: Exception) -> None:
    verdict = verdict_on(make_attempt(attempt=25, max_attempts=25), error, skip_frames=0)

    assert (verdict.outcome, verdict.delay_seconds) == (AttemptOutcome.DISCARDED, None)
    assert verdict.discard_reason is DiscardReason.MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("interruption", "outcome", "text"),
    [
        (Interruption.SHUTDOWN, AttemptOutcome.INTERRUPTED, "interrupted by the worker's shutdown"),
        (Interruption.CANCELLED, AttemptOutcome.CANCELLED, "sold out"),
        (Interruption.TIMED_OUT, AttemptOutcome.RETRIED, "timed out after 600 s"),
    ],
)
def test_what_an_interrupted_job_raises_instead_means_its_interruption(
    interruption: Interruption, outcome: AttemptOutcome, text: str
) -> None:
    attempt = make_attempt()
    attempt.interruption, attempt.reason = interruption, "sold out"

    verdict = verdict_on(attempt, RuntimeError("the cursor is closed"), skip_frames=0)

    assert (verdict.outcome, verdict.error) == (outcome, text)

"""Attempts for the worker's own parts, without a database."""

from datetime import UTC, datetime

from sweephand import App
from sweephand.job import Job
from sweephand.postgres.claim import ClaimedJob
from sweephand.worker.attempts import Attempt


def make_attempt(
    job: Job[...] | None = None,
    *,
    job_id: int = 53,
    args: str = "{}",
    attempt: int = 1,
    max_attempts: int = 25,
    timeout_seconds: float = 600,
    claimed_monotonic: float = 0.0,
) -> Attempt:
    """Return a claimed attempt of the job, or of one that does nothing."""
    of_job = job if job is not None else _noop()
    claimed = ClaimedJob(job_id, of_job.kind, args, attempt, max_attempts, timeout_seconds, None, datetime.now(UTC), 0.0)
    return Attempt(claimed, job=of_job, queue=of_job.queue, claim_token="t", claimed_monotonic=claimed_monotonic)


def _noop() -> Job[...]:
    @App("test").job()
    def noop() -> None:
        """Do nothing."""

    return noop

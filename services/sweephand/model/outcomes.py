"""Name how an attempt can end, and the signals by which a job says so itself."""

from datetime import timedelta
from enum import StrEnum


class AttemptOutcome(StrEnum):
    """Say how one attempt of a job ended; the value is what the database stores."""

    COMPLETED = "completed"
    RETRIED = "retried"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"
    INTERRUPTED = "interrupted"
    LOST = "lost"


class JobSignal(Exception):
    """Be the root of what a job raises to end its attempt in another way than done or failed."""


class Snooze(JobSignal):
    """Run the job again after `delay`, without counting this attempt."""

    def __init__(self, delay: timedelta) -> None:
        super().__init__(f"snoozed for {delay.total_seconds():g} s")
        self.delay = delay


class RetryJob(JobSignal):
    """Fail this attempt and run the job again after `delay`; None means the job's own backoff."""

    def __init__(self, delay: timedelta | None = None) -> None:
        super().__init__("asked for a retry" if delay is None else f"asked for a retry in {delay.total_seconds():g} s")
        self.delay = delay


class CancelJob(JobSignal):
    """Cancel the job: it will not run again, and nobody needs to act."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class DiscardJob(JobSignal):
    """Discard the job at once, whatever attempts are left: somebody should look at it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)

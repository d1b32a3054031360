"""Hold what a worker knows of one attempt, from its claim to its end."""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

from sweephand.job import Job
from sweephand.postgres.claim import ClaimedJob, HeldAttempt
from sweephand.postgres.finish import FinishedAttempt
from sweephand.telemetry import DiscardReason


class Interruption(Enum):
    """Say why a running attempt was interrupted from outside."""

    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"


class Attempt:
    """One attempt in this process. One thread at a time changes it: the consumer's, then the one that runs it.

    Not frozen: one is made for every job, and a new object for each step of its life would cost more than the job.
    """

    started = 0.0
    ended = 0.0
    deadline = 0.0
    thread_id = 0
    is_logged = False
    # Set by current_job().complete(…); whether that was committed is only known when its transaction has ended.
    is_completing = False
    tell_end: Callable[[], None] | None = None
    is_raised = False
    log_facts: Mapping[str, object] = MappingProxyType({})
    interruption: Interruption | None = None
    reason = ""
    discard_reason: DiscardReason | None = None
    finished: FinishedAttempt | None = None

    def __init__(self, claimed: ClaimedJob, *, job: Job[...], queue: str, claim_token: str, claimed_monotonic: float) -> None:
        self.claimed = claimed
        self.job = job
        self.queue = queue
        self.claim_token = claim_token
        self.claimed_monotonic = claimed_monotonic

    @property
    def held(self) -> HeldAttempt:
        """What proves to the database that this attempt is ours."""
        return HeldAttempt(self.claimed.job_id, self.claimed.attempt, self.claim_token)

"""Hold what a worker knows of one attempt, from its claim to its end."""

from enum import Enum

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

    __slots__ = (
        "claim_token",
        "claimed",
        "claimed_monotonic",
        "deadline",
        "discard_reason",
        "ended",
        "finished",
        "interruption",
        "is_logged",
        "is_raised",
        "job",
        "log_facts",
        "queue",
        "reason",
        "started",
        "thread_id",
    )

    def __init__(self, claimed: ClaimedJob, *, job: Job[...], queue: str, claim_token: str, claimed_monotonic: float) -> None:
        self.claimed = claimed
        self.job = job
        self.queue = queue
        self.claim_token = claim_token
        self.claimed_monotonic = claimed_monotonic
        self.started = 0.0
        self.ended = 0.0
        self.deadline = 0.0
        self.thread_id = 0
        self.is_logged = False
        self.is_raised = False
        self.log_facts: dict[str, object] = {}
        self.interruption: Interruption | None = None
        self.reason = ""
        self.discard_reason: DiscardReason | None = None
        self.finished: FinishedAttempt | None = None

    @property
    def held(self) -> HeldAttempt:
        """What proves to the database that this attempt is ours."""
        return HeldAttempt(self.claimed.job_id, self.claimed.attempt, self.claim_token)

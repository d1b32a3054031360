"""Hold attempts without a worker, as its threads do."""

from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from uuid import uuid4

import psycopg

from sweephand import JobContext
from sweephand.postgres.claim import claim
from tests.support.jobs import insert_worker


@dataclass(slots=True)
class HeldClaim:
    """Be what a worker knows of an attempt."""

    claim_token: str
    started: float
    is_completing: bool = False


def hold_job(conn: psycopg.Connection, *, kind: str = "noop", queue: str = "default") -> JobContext:
    """Claim the next job as a worker that lives, and return the context that its function would see."""
    held = HeldClaim(str(uuid4()), monotonic())
    worker_id = insert_worker(conn, "worker-a")
    (claimed,) = claim(conn, queue=queue, kinds=[kind], limit=1, worker_id=worker_id, claim_token=held.claim_token)
    return JobContext(
        claimed.job_id, kind, queue, claimed.attempt, claimed.max_attempts, claimed.tick_id, datetime.now(UTC), held
    )

"""Read the queues for people: every queue that a job, a sweep, a worker or an operator has named."""

from dataclasses import dataclass
from datetime import datetime

import psycopg

from sweephand.postgres.moments import utc_row

# One pass over the unfinished jobs through their partial indexes; a queue without any shows up by its other mentions.
_QUEUES = """
WITH waiting AS (
    SELECT queue, count(*) FILTER (WHERE state = 'scheduled') AS scheduled,
        count(*) FILTER (WHERE state = 'available') AS available, count(*) FILTER (WHERE state = 'retryable') AS retryable,
        min(scheduled_at) FILTER (WHERE scheduled_at <= now()) AS oldest_due_at
    FROM sweephand.job WHERE state IN ('scheduled', 'available', 'retryable') GROUP BY queue
), running AS (
    SELECT queue, count(*) AS running FROM sweephand.job WHERE state = 'running' GROUP BY queue
), serving AS (
    SELECT queue, count(*) AS workers, sum(slots) AS slots FROM sweephand.worker, unnest(queues) AS queue
    WHERE stopping_at IS NULL AND heartbeat_at > now() - interval '30 seconds' GROUP BY queue
), named AS (
    SELECT queue AS name FROM waiting UNION SELECT queue FROM running UNION SELECT queue FROM serving
    UNION SELECT name FROM sweephand.queue UNION SELECT queue FROM sweephand.sweep
)
SELECT named.name, queue.paused_at, queue.paused_by, queue.paused_note, queue.concurrency_limit,
    coalesce(scheduled, 0) AS scheduled, coalesce(available, 0) AS available, coalesce(running, 0) AS running,
    coalesce(retryable, 0) AS retryable, oldest_due_at, coalesce(workers, 0) AS workers, coalesce(slots, 0) AS slots
FROM named LEFT JOIN sweephand.queue ON queue.name = named.name LEFT JOIN waiting ON waiting.queue = named.name
    LEFT JOIN running ON running.queue = named.name LEFT JOIN serving ON serving.queue = named.name
ORDER BY named.name
"""


@dataclass(frozen=True, slots=True)
class QueueView:
    """Be a queue as it stands. `oldest_due_at` is when the job was due that waits longest.

    `workers` counts those that were heard of in the last 30 seconds and still claim; `slots` is how many jobs they can run
    at once, of all the queues that they serve.
    """

    name: str
    paused_at: datetime | None
    paused_by: str | None
    paused_note: str | None
    concurrency_limit: int | None
    scheduled: int
    available: int
    running: int
    retryable: int
    oldest_due_at: datetime | None
    workers: int
    slots: int


def read_queues(connection: psycopg.Connection) -> list[QueueView]:
    """Return all queues, by name."""
    with connection.cursor(row_factory=utc_row(QueueView)) as cursor:
        return cursor.execute(_QUEUES).fetchall()

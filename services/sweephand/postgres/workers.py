"""Keep the table of workers: who runs, since when, and who was heard of last."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

_REGISTER = """
INSERT INTO sweephand.worker (name, boot_id, app, queues, slots, started_at, heartbeat_at)
VALUES (%s, %s, %s, %s, %s, now(), now()) RETURNING id
"""
_HEARTBEAT = """
WITH beat AS (UPDATE sweephand.worker SET heartbeat_at = now() WHERE id = %s RETURNING id)
SELECT EXISTS (SELECT FROM beat), ARRAY (
    SELECT name FROM sweephand.queue WHERE concurrency_limit IS NOT NULL AND name = ANY (%s))
"""
_CANCELLATIONS = """
SELECT id, attempt, coalesce(cancel_reason, 'cancelled') FROM sweephand.job
WHERE worker_id = %s AND state = 'running' AND cancel_requested_at IS NOT NULL
"""


class Heartbeat(NamedTuple):
    """What a heartbeat brings back: whether the worker's row still exists, and which queues have a limit."""

    is_known: bool
    limited_queues: frozenset[str]


class Cancellation(NamedTuple):
    """The request to cancel a running attempt."""

    job_id: int
    attempt: int
    reason: str


def register_worker(conn: psycopg.Connection, *, name: str, boot_id: UUID, app: str, queues: Sequence[str], slots: int) -> int:
    """Add a worker to the table and return its id, which its claims carry."""
    row = conn.execute(_REGISTER, (name, boot_id, app, list(queues), slots)).fetchone()
    if row is None:
        raise AssertionError("INSERT … RETURNING gave no row")
    return int(row[0])


def heartbeat(conn: psycopg.Connection, *, worker_id: int, queues: Sequence[str]) -> Heartbeat:
    """Tell that the worker lives. A row that is gone means that it was given up: its jobs are with others."""
    row = conn.execute(_HEARTBEAT, (worker_id, list(queues))).fetchone()
    return Heartbeat(is_known=bool(row and row[0]), limited_queues=frozenset(row[1]) if row else frozenset())


def cancellations(conn: psycopg.Connection, *, worker_id: int) -> list[Cancellation]:
    """Return the running attempts of this worker that someone has asked to cancel."""
    return [Cancellation(*row) for row in conn.execute(_CANCELLATIONS, (worker_id,)).fetchall()]


def mark_stopping(conn: psycopg.Connection, *, worker_id: int) -> None:
    """Say that the worker claims no more and only finishes what it runs."""
    conn.execute("UPDATE sweephand.worker SET stopping_at = now() WHERE id = %s", (worker_id,))


def remove_worker(conn: psycopg.Connection, *, worker_id: int) -> None:
    """Take a worker that has ended off the table; whatever it may still hold is rescued at once."""
    conn.execute("DELETE FROM sweephand.worker WHERE id = %s", (worker_id,))

"""Pause queues and bound how many of a queue's jobs run at once, across all workers."""

import psycopg

_PAUSE = """
INSERT INTO sweephand.queue (name, paused_at, paused_by, paused_note) VALUES (%s, now(), %s, %s)
ON CONFLICT (name) DO UPDATE
SET paused_at = coalesce(queue.paused_at, excluded.paused_at), paused_by = excluded.paused_by,
    paused_note = excluded.paused_note
"""
_RESUME = """
WITH resumed AS (
    UPDATE sweephand.queue SET paused_at = NULL, paused_by = NULL, paused_note = NULL
    WHERE name = %s AND paused_at IS NOT NULL RETURNING name
)
SELECT pg_notify('sweephand.' || name, '') FROM resumed
"""
_LIMIT = """
INSERT INTO sweephand.queue (name, concurrency_limit) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET concurrency_limit = excluded.concurrency_limit
"""


def pause_queue(conn: psycopg.Connection, queue: str, *, by: str, note: str | None) -> None:
    """Stop claims of the queue at once; what runs goes on. Pausing again keeps the moment and replaces who and why."""
    conn.execute(_PAUSE, (queue, by, note))


def resume_queue(conn: psycopg.Connection, queue: str) -> bool:
    """Let workers claim of the queue again and notify them; return whether it was paused."""
    return conn.execute(_RESUME, (queue,)).rowcount == 1


def limit_queue(conn: psycopg.Connection, queue: str, *, concurrency_limit: int | None) -> None:
    """Bound how many jobs of the queue run at once across all workers; None lifts the bound.

    Claims of a queue with a limit take its row's lock one after the other, so it is for queues that need it. Workers
    learn of a new limit with their next heartbeat; until then they claim nothing of the queue.
    """
    conn.execute(_LIMIT, (queue, concurrency_limit))

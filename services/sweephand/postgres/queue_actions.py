"""Pause, resume and bound queues on an operator's word; each change and its audit entry are one transaction."""

import psycopg

from sweephand.postgres.audit import record
from sweephand.postgres.operator_session import writing
from sweephand.postgres.queues import limit_queue, pause_queue, resume_queue


def pause(connection: psycopg.Connection, queue: str, *, by: str, note: str | None) -> None:
    """Stop the queue's claims; what runs goes on. Pausing again keeps the moment and replaces who and why."""
    with writing(connection):
        pause_queue(connection, queue, by=by, note=note)
        record(connection, actor=by, action="queue.pause", target=f"queue {queue}", note=note)


def resume(connection: psycopg.Connection, queue: str, *, by: str, note: str | None) -> bool:
    """Let workers claim of the queue again; return whether it was paused."""
    with writing(connection):
        was_paused = resume_queue(connection, queue)
        if was_paused:
            record(connection, actor=by, action="queue.resume", target=f"queue {queue}", note=note)
    return was_paused


def limit(connection: psycopg.Connection, queue: str, concurrency_limit: int | None, *, by: str, note: str | None) -> None:
    """Bound how many of the queue's jobs run at once across all workers; None lifts the bound."""
    with writing(connection):
        limit_queue(connection, queue, concurrency_limit=concurrency_limit)
        action = "queue.lift_limit" if concurrency_limit is None else f"queue.limit {concurrency_limit}"
        record(connection, actor=by, action=action, target=f"queue {queue}", note=note)

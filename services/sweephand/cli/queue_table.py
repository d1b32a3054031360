"""Show queues."""

from collections.abc import Sequence
from datetime import datetime

from sweephand.cli.output import relative_text, span_text
from sweephand.cli.tables import Cell, Column, write_table
from sweephand.postgres.queue_views import QueueView


def write_queues(queues: Sequence[QueueView], *, now: datetime) -> None:
    """Write the table of queues."""
    columns = (
        Column("QUEUE", least=12),
        Column("SCHEDULED", is_number=True, yields=4),
        Column("AVAILABLE", is_number=True),
        Column("RUNNING", is_number=True),
        Column("LIMIT", is_number=True, yields=2),
        Column("RETRYABLE", is_number=True, yields=3),
        Column("WAITING FOR", is_number=True, yields=1),
        Column("WORKERS", is_number=True),
        Column("SLOTS", is_number=True, yields=5),
        Column("STATUS", least=20),
    )
    rows: list[list[str | Cell]] = [
        [
            queue.name,
            f"{queue.scheduled:,}",
            f"{queue.available:,}",
            f"{queue.running:,}",
            "" if queue.concurrency_limit is None else f"{queue.concurrency_limit:,}",
            f"{queue.retryable:,}",
            "" if queue.oldest_due_at is None else span_text(now - queue.oldest_due_at),
            Cell(f"{queue.workers:,}", "" if queue.workers else "yellow"),
            f"{queue.slots:,}",
            _status(queue, now),
        ]
        for queue in queues
    ]
    write_table(columns, rows, nothing="no queue is known: no job, sweep or worker has named one yet")


def _status(queue: QueueView, now: datetime) -> Cell:
    if queue.paused_at is not None:
        note = f": {queue.paused_note}" if queue.paused_note else ""
        return Cell(f"paused {relative_text(queue.paused_at, now=now)} by {queue.paused_by or 'unknown'}{note}", "yellow")
    if not queue.workers and queue.oldest_due_at is not None:
        return Cell("no worker serves it", "red")
    return Cell("active")

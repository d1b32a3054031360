"""Show jobs, counts and errors."""

import json
from collections.abc import Sequence
from datetime import datetime

from sweephand.cli.audit_table import write_audit
from sweephand.cli.output import args_text, both_texts, relative_text, span_text, utc_text
from sweephand.cli.tables import Cell, Column, write_block, write_facts, write_heading, write_table
from sweephand.postgres.audit import AuditEntry
from sweephand.postgres.job_views import AttemptView, JobView

_STYLES = {
    "available": "cyan", "running": "blue", "retryable": "yellow", "completed": "green", "discarded": "red", "retried": "yellow",
    "lost": "red", "cancelled": "dim", "scheduled": "", "snoozed": "cyan", "interrupted": "cyan",
}  # fmt: skip


def write_jobs(jobs: Sequence[JobView], *, now: datetime) -> None:
    """Write a list of jobs."""
    columns = (
        Column("ID", is_number=True),
        Column("KIND", least=16),
        Column("QUEUE", yields=2),
        Column("STATE"),
        Column("ATTEMPT", is_number=True, yields=3),
        Column("WHEN"),
        Column("TICK", is_number=True, yields=4),
        Column("ARGUMENTS", least=20, yields=1),
    )
    rows: list[list[str | Cell]] = [
        [
            str(job.id),
            job.kind,
            job.queue,
            Cell(job.state, _STYLES.get(job.state, "")),
            f"{job.attempt}/{job.max_attempts}",
            _when(job, now),
            "" if job.tick_id is None else str(job.tick_id),
            args_text(job.args),
        ]
        for job in jobs
    ]
    write_table(columns, rows, nothing="no job matches")


def write_failed_jobs(jobs: Sequence[JobView], *, now: datetime) -> None:
    """Write a list of failed jobs with their last error."""
    columns = (
        Column("ID", is_number=True),
        Column("KIND", least=16),
        Column("QUEUE", yields=3),
        Column("STATE"),
        Column("ATTEMPT", is_number=True, yields=1),
        Column("WHEN"),
        Column("ARGUMENTS", least=20, yields=2),
        Column("LAST ERROR", least=32),
    )
    rows: list[list[str | Cell]] = [
        [
            str(job.id),
            job.kind,
            job.queue,
            Cell(job.state, _STYLES.get(job.state, "")),
            f"{job.attempt}/{job.max_attempts}",
            _when(job, now),
            args_text(job.args),
            job.last_error or "",
        ]
        for job in jobs
    ]
    write_table(columns, rows, nothing="no job has failed")


def write_job(
    job: JobView, attempts: Sequence[AttemptView], audit: Sequence[AuditEntry], *, now: datetime, has_all_tracebacks: bool
) -> None:
    """Write all about one job."""
    facts: list[tuple[str, str | Cell]] = [
        ("job", str(job.id)),
        ("kind", job.kind),
        ("queue", job.queue),
        ("state", Cell(job.state, _STYLES.get(job.state, ""))),
        ("attempt", f"{job.attempt} of {job.max_attempts}, {job.timeout_seconds:g} s each at most"),
        ("enqueued", both_texts(job.created_at, now=now) + ("" if job.tick_id is None else f" by tick {job.tick_id}")),
        ("due", both_texts(job.scheduled_at, now=now)),
    ]
    if job.claimed_at is not None:
        by = f" by {job.worker_name}" if job.worker_name else ""
        facts.append(("claimed", both_texts(job.claimed_at, now=now) + by))
    if job.finished_at is not None:
        facts.append(("finished", both_texts(job.finished_at, now=now)))
    if job.cancel_requested_at is not None:
        why = f": {job.cancel_reason}" if job.cancel_reason else ""
        facts.append(("cancel asked", Cell(both_texts(job.cancel_requested_at, now=now) + why, "yellow")))
    write_facts(facts)
    write_heading("Arguments")
    write_block(json.dumps(job.args, ensure_ascii=False, indent=2))
    write_heading("Attempts")
    _write_attempts(attempts, now=now)
    shown = [attempt for attempt in attempts if attempt.traceback]
    for attempt in shown if has_all_tracebacks else shown[-1:]:
        write_heading(f"Traceback of attempt {attempt.attempt}")
        write_block(attempt.traceback or "")
    if audit:
        write_heading("Who did what")
        write_audit(audit, now=now)


def _write_attempts(attempts: Sequence[AttemptView], *, now: datetime) -> None:
    columns = (
        Column("ATTEMPT", is_number=True),
        Column("STARTED", yields=1),
        Column("AGO"),
        Column("TOOK", is_number=True),
        Column("OUTCOME"),
        Column("WORKER", least=12, yields=2),
        Column("ERROR", least=32),
    )
    rows: list[list[str | Cell]] = [
        [
            str(attempt.attempt),
            utc_text(attempt.started_at),
            relative_text(attempt.started_at, now=now),
            span_text(attempt.ended_at - attempt.started_at),
            Cell(attempt.outcome, _STYLES.get(attempt.outcome, "")),
            attempt.worker_name or "",
            attempt.error or "",
        ]
        for attempt in attempts
    ]
    write_table(columns, rows, nothing="no attempt has ended")


def _when(job: JobView, now: datetime) -> str:
    """Return the moment that matters in the job's state."""
    if job.finished_at is not None:
        return relative_text(job.finished_at, now=now)
    if job.state == "running" and job.claimed_at is not None:
        return f"for {span_text(now - job.claimed_at)}"
    return f"due {relative_text(job.scheduled_at, now=now)}"

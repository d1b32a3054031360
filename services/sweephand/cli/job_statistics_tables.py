"""Show counts, kinds and errors of jobs."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sweephand.cli.output import relative_text, span_text
from sweephand.cli.tables import Cell, Column, write_facts, write_heading, write_hint, write_table
from sweephand.postgres.job_statistics import ErrorGroup, JobCounts, KindView


def write_counts(counts: Sequence[JobCounts], *, title: str, since: timedelta, now: datetime) -> None:
    """Write the counts of queues or kinds."""
    columns = (
        Column(title, least=12),
        Column("SCHEDULED", is_number=True, yields=3),
        Column("AVAILABLE", is_number=True),
        Column("RUNNING", is_number=True),
        Column("RETRYABLE", is_number=True),
        Column("WAITING FOR", is_number=True, yields=1),
        Column("COMPLETED", is_number=True, yields=2),
        Column("DISCARDED", is_number=True),
        Column("CANCELLED", is_number=True, yields=4),
    )
    rows: list[list[str | Cell]] = [
        [
            one.name,
            f"{one.scheduled:,}",
            f"{one.available:,}",
            f"{one.running:,}",
            Cell(f"{one.retryable:,}", "yellow" if one.retryable else ""),
            "" if one.oldest_due_at is None else span_text(now - one.oldest_due_at),
            f"{one.completed:,}",
            Cell(f"{one.discarded:,}", "red" if one.discarded else ""),
            f"{one.cancelled:,}",
        ]
        for one in counts
    ]
    write_table(columns, rows, nothing=f"no unfinished job, and none finished in {span_text(since)}")
    if rows:
        write_hint(f"completed, discarded and cancelled: in the last {span_text(since)}")


def write_kind(view: KindView, *, since: timedelta, now: datetime) -> None:
    """Write all about one kind."""
    numbers = view.numbers
    measured = "no attempts"
    if numbers.median_seconds is not None and numbers.p95_seconds is not None and numbers.max_seconds is not None:
        median, p95, longest = (
            span_text(timedelta(seconds=seconds))
            for seconds in (numbers.median_seconds, numbers.p95_seconds, numbers.max_seconds)
        )
        share = 100 * numbers.completed / numbers.attempts
        measured = f"median {median}, p95 {p95}, longest {longest}; {share:.0f} % of {numbers.attempts:,} completed"
    write_facts(
        [
            ("kind", view.kind),
            ("queues", ", ".join(one.name for one in view.by_queue) or "none"),
            ("sweeps", ", ".join(view.sweeps) or "none"),
            ("attempts", measured),
        ]
    )
    write_heading("Jobs")
    write_counts(view.by_queue, title="QUEUE", since=since, now=now)
    if view.errors:
        write_heading("Errors")
        write_errors(view.errors, now=now, is_of_one_kind=True)


def write_errors(groups: Sequence[ErrorGroup], *, now: datetime, is_of_one_kind: bool = False) -> None:
    """Write groups of errors."""
    columns = (
        Column("ATTEMPTS", is_number=True),
        Column("JOBS", is_number=True, yields=2),
        *(() if is_of_one_kind else (Column("KIND", least=16),)),
        Column("LAST SEEN"),
        Column("FIRST SEEN", yields=3),
        Column("LAST JOB", is_number=True, yields=1),
        Column("ERROR", least=32),
    )
    rows: list[list[str | Cell]] = [
        [
            f"{group.attempts:,}",
            f"{group.jobs:,}",
            *([] if is_of_one_kind else [group.kind]),
            relative_text(group.last_at, now=now),
            relative_text(group.first_at, now=now),
            str(group.last_job_id),
            Cell(group.pattern, "red"),
        ]
        for group in groups
    ]
    write_table(columns, rows, nothing="no attempt has failed in that time")

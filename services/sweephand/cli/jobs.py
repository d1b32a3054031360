"""`sweephand jobs`: count, list and look into jobs. The verbs that change them are in job_verbs.py."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from sweephand.cli.job_verbs import cancel, delete, discard, retry
from sweephand.cli.options import Id, QueueName, filter_options, json_option, limit_option, since_option
from sweephand.cli.output import write_json

if TYPE_CHECKING:
    from sweephand.postgres.job_filter import JobFilter


@click.group()
def jobs() -> None:
    """See and change jobs.

    Which verb works in which state: docs/reference/jobs.md.
    """


for verb in (retry, cancel, discard, delete):
    jobs.add_command(verb)


@jobs.command()
@click.option("--by", "by", type=click.Choice(["queue", "kind"]), default="queue", show_default=True, help="Count by this.")
@since_option("1h")
@json_option
def stats(*, by: str, since: timedelta, is_json: bool) -> None:
    """Count jobs by queue or kind.

    Unfinished ones are counted all, finished ones of the last hour, or of --since.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.job_statistics_tables import write_counts
    from sweephand.postgres.job_statistics import GroupBy, read_counts
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        counts = read_counts(connection, by=GroupBy(by), since=since)
        now = read_now(connection)
    if is_json:
        write_json(now=now, by=by, since_seconds=since, counts=counts)
    else:
        write_counts(counts, title=by.upper(), since=since, now=now)


@jobs.command("list")
@filter_options
@click.option("--before", type=Id(), metavar="ID", help="Only jobs with a lower id: the next page.")
@limit_option(20)
@json_option
def list_jobs(*, which: "JobFilter", before: int | None, limit: int, is_json: bool) -> None:
    """List jobs, the newest first.

    --arg compares one argument of the job with its text: --arg product_id=7 --arg name="a b". What no index serves, such as
    a kind or an argument among completed jobs, is looked for in the latest 200,000 jobs, and the answer says so.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.job_tables import write_jobs
    from sweephand.cli.tables import write_hint
    from sweephand.postgres.job_views import read_jobs
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        found = read_jobs(connection, which, limit=limit + 1, before_id=before)
        now = read_now(connection)
    listed = found.jobs[:limit]
    next_before = listed[-1].id if len(found.jobs) > limit else found.searched_to_id
    if is_json:
        write_json(
            now=now,
            jobs=listed,
            next_before_id=None if next_before is None else str(next_before),
            is_search_cut=found.searched_to_id is not None,
        )
        return
    write_jobs(listed, now=now)
    if found.searched_to_id is not None:
        write_hint(f"jobs below id {next_before} were not looked at; go on with --before {next_before}")
    elif next_before is not None:
        write_hint(f"more match; the next page: --before {next_before}")


@jobs.command()
@click.argument("kind")
@since_option("24h")
@json_option
def kind(*, kind: str, since: timedelta, is_json: bool) -> None:
    """Show a kind: counts, durations, frequent errors, its sweeps.

    Durations are those of the attempts of the 1,000 jobs that finished last.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.job_statistics_tables import write_kind
    from sweephand.postgres.job_statistics import read_kind
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        view = read_kind(connection, kind, since=since)
        now = read_now(connection)
    if is_json:
        write_json(now=now, since_seconds=since, kind=view)
    else:
        write_kind(view, since=since, now=now)


@jobs.command()
@click.argument("job_id", metavar="ID", type=Id())
@click.option("--tracebacks", "has_all", is_flag=True, help="The tracebacks of all attempts, not of the last only.")
@json_option
def show(*, job_id: int, has_all: bool, is_json: bool) -> None:
    """Show one job: its arguments, each attempt with its error, and the last traceback."""
    from sweephand.cli.database import open_database
    from sweephand.cli.job_tables import write_job
    from sweephand.postgres.audit import read_audit
    from sweephand.postgres.job_views import read_attempts, read_job
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        job = read_job(connection, job_id)
        attempts = read_attempts(connection, job_id)
        audit = read_audit(connection, f"job {job_id}")
        now = read_now(connection)
    if is_json:
        write_json(now=now, job=job, attempts=attempts, audit=audit)
    else:
        write_job(job, attempts, audit, now=now, has_all_tracebacks=has_all)


@jobs.command()
@click.option("--kind", help="Of this kind.")
@click.option("--queue", type=QueueName(), help="Of this queue.")
@limit_option(20)
@json_option
def failed(*, kind: str | None, queue: str | None, limit: int, is_json: bool) -> None:
    """List failed jobs with their last error, the latest failure first.

    Those are the discarded ones and those that wait for a retry.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.job_tables import write_failed_jobs
    from sweephand.postgres.job_filter import JobFilter
    from sweephand.postgres.job_views import read_failed_jobs
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        found = read_failed_jobs(connection, JobFilter(kind=kind, queue=queue), limit=limit)
        now = read_now(connection)
    if is_json:
        write_json(now=now, jobs=found)
    else:
        write_failed_jobs(found, now=now)


@jobs.command()
@click.option("--kind", help="Of this kind.")
@click.option("--queue", type=QueueName(), help="Of this queue.")
@since_option("24h")
@limit_option(20)
@json_option
def errors(*, kind: str | None, queue: str | None, since: timedelta, limit: int, is_json: bool) -> None:
    """Group the errors of failed attempts by kind and text, the most frequent first.

    Numbers and ids in a text do not count, so `product 7 not found` and `product 9 not found` are one error. The latest
    100,000 errors are looked at.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.job_statistics_tables import write_errors
    from sweephand.postgres.job_statistics import read_errors
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        found = read_errors(connection, since=since, limit=limit, kind=kind, queue=queue)
        now = read_now(connection)
    if is_json:
        write_json(now=now, since_seconds=since, errors=found)
    else:
        write_errors(found, now=now)

"""The operators' questions about jobs read what they need through indexes, on a table of 50,000 jobs."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest

from sweephand.model.lifecycle import UNFINISHED
from sweephand.model.states import JobState
from sweephand.postgres.job_actions import find_jobs
from sweephand.postgres.job_filter import JobFilter
from sweephand.postgres.job_statistics import GroupBy, read_counts, read_errors, read_kind
from sweephand.postgres.job_views import read_attempts, read_failed_jobs, read_job, read_jobs
from sweephand.postgres.migrate import migrate
from sweephand.postgres.operator_session import reading
from sweephand.postgres.queue_views import read_queues
from tests.support.databases import Databases
from tests.support.jobs import open_connection

# 49,000 completed, one every three seconds until now, and a few hundred of everything else, spread over the table.
_FILL = """
INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at, finished_at, claim_token,
    worker_id, tick_id)
SELECT 'kind_' || n % 5, 'queue_' || n % 3, state, jsonb_build_object('n', n), 25, 600,
    now() + CASE state WHEN 'scheduled' THEN interval '1 hour' ELSE interval '-2 days' END,
    CASE WHEN state IN ('completed', 'discarded', 'cancelled') THEN now() - (50000 - n) * interval '3 s' END,
    CASE WHEN state = 'running' THEN gen_random_uuid() END, CASE WHEN state = 'running' THEN n END, n / 100
FROM (SELECT n, CASE WHEN n % 100 < 98 THEN 'completed' WHEN n % 100 = 98 THEN 'discarded'
    ELSE (ARRAY['scheduled', 'available', 'retryable', 'running', 'cancelled'])[1 + n / 100 % 5] END AS state
    FROM generate_series(1, 50000) AS n) AS job;
INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome, error)
SELECT id, 1, coalesce(finished_at, now()) - interval '1 s', coalesce(finished_at, now()),
    CASE state WHEN 'completed' THEN 'completed' ELSE 'discarded' END, CASE state WHEN 'discarded' THEN 'KeyError: ' || id END
FROM sweephand.job WHERE state IN ('completed', 'discarded')
"""
_READ = """
SELECT sum(seq_tup_read)::integer, sum(coalesce(idx_tup_fetch, 0))::integer
FROM pg_stat_xact_user_tables WHERE schemaname = 'sweephand' AND relname IN ('job', 'job_attempt')
"""
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


@pytest.fixture(scope="module", params=["none", "analyzed"])
def filled(databases: Databases, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """The filled table, of which the planner has no statistics, or has them: two databases, so that no test makes another's."""
    url = databases.create_clone(migrate)
    with open_connection(url) as connection:
        # Statistics come when the test says so, not when autovacuum gets round to it, half-filled pages and all.
        for table in ("job", "job_attempt"):
            connection.execute(f"ALTER TABLE sweephand.{table} SET (autovacuum_enabled = off)")
        connection.execute(_FILL)
        if request.param == "analyzed":
            connection.execute("ANALYZE sweephand.job, sweephand.job_attempt")
        yield connection
    databases.drop(url)


_QUESTIONS: dict[str, tuple[Callable[[psycopg.Connection], object], int]] = {
    "list": (lambda c: read_jobs(c, JobFilter(), limit=21), 100),
    "next page": (lambda c: read_jobs(c, JobFilter(), limit=21, before_id=25_000), 100),
    "completed": (lambda c: read_jobs(c, JobFilter(states=(JobState.COMPLETED,)), limit=21), 200),
    "discarded": (lambda c: read_jobs(c, JobFilter(states=(JobState.DISCARDED,)), limit=21), 3_000),
    "discarded of a kind": (lambda c: read_jobs(c, JobFilter(states=(JobState.DISCARDED,), kind="none"), limit=21), 3_000),
    "running": (lambda c: read_jobs(c, JobFilter(states=(JobState.RUNNING,)), limit=21), 3_000),
    "available": (lambda c: read_jobs(c, JobFilter(states=(JobState.AVAILABLE,)), limit=21), 3_000),
    "available of a kind": (lambda c: read_jobs(c, JobFilter(states=(JobState.AVAILABLE,), kind="none"), limit=21), 3_000),
    "unfinished of a kind": (lambda c: read_jobs(c, JobFilter(states=UNFINISHED, kind="none"), limit=21), 3_000),
    "of a tick": (lambda c: read_jobs(c, JobFilter(tick_id=77), limit=21), 300),
    "of a kind": (lambda c: read_jobs(c, JobFilter(kind="kind_3"), limit=21), 300),
    "of a kind that is rare": (lambda c: read_jobs(c, JobFilter(kind="none"), limit=21, walk_bound=1_000), 2_100),
    "with an argument": (lambda c: read_jobs(c, JobFilter(args={"n": "7"}), limit=21, walk_bound=1_000), 2_100),
    "cancelled": (lambda c: read_jobs(c, JobFilter(states=(JobState.CANCELLED,)), limit=21, walk_bound=1_000), 2_100),
    "failed": (lambda c: read_failed_jobs(c, JobFilter(), limit=20), 3_000),
    "errors": (lambda c: read_errors(c, since=_DAY, limit=20), 3_000),
    "stats": (lambda c: read_counts(c, by=GroupBy.QUEUE, since=_HOUR), 3_000),
    "kind": (lambda c: read_kind(c, "kind_1", since=_HOUR), 12_000),
    "show": (lambda c: (read_job(c, 25_000), read_attempts(c, 25_000)), 10),
    "queues": (read_queues, 3_000),
    "what to retry": (lambda c: find_jobs(c, JobFilter(states=(JobState.RETRYABLE, JobState.DISCARDED))), 3_000),
    "what to cancel": (lambda c: find_jobs(c, JobFilter(states=UNFINISHED, queue="queue_1")), 3_000),
}


@pytest.mark.parametrize("question", _QUESTIONS)
def test_a_question_reads_few_rows_and_no_table_as_a_whole(filled: psycopg.Connection, question: str) -> None:
    _assert_reads_few(filled, *_QUESTIONS[question])


def _assert_reads_few(filled: psycopg.Connection, ask: Callable[[psycopg.Connection], object], most_rows: int) -> None:
    with reading(filled):
        before = _rows_read(filled)
        ask(filled)
        after = _rows_read(filled)

    in_order, by_index = after[0] - before[0], after[1] - before[1]
    assert in_order == 0, f"{in_order:,} rows were read by sequential scans"
    assert by_index <= most_rows


def test_a_search_that_was_cut_off_says_where_and_goes_on_from_there(filled: psycopg.Connection) -> None:
    which = JobFilter(kind="kind_1", args={"n": "40001"})
    last_id = read_jobs(filled, JobFilter(), limit=1).jobs[0].id

    cut = read_jobs(filled, which, limit=5, walk_bound=1_000)
    rest = read_jobs(filled, which, limit=5, walk_bound=100_000, before_id=cut.searched_to_id)

    assert (cut.jobs, cut.searched_to_id) == ([], last_id - 999)
    assert ([job.args for job in rest.jobs], rest.searched_to_id) == ([{"n": 40001}], None)


def _rows_read(connection: psycopg.Connection) -> tuple[int, int]:
    """Return how many rows this session has read in sequential scans, and by indexes, since its counts were last sent off."""
    row = connection.execute(_READ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])

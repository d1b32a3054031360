"""The worker's connections: what their plans do when the job table grows, and what they leave in a pooler's sessions."""

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.claim import ClaimedJob, claim
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.telemetry import DatabaseMetrics
from sweephand.worker.link import DatabaseLink
from tests.support.jobs import insert_jobs
from tests.support.pgbouncer import PGBOUNCER, transaction_pooler

_WARM = 12  # PostgreSQL plans a prepared statement five times anew before it may keep a plan
_GROWN = 5_000


@pytest.fixture
def link(database_url: str) -> Iterator[DatabaseLink]:
    made = make_link(database_url)
    yield made
    made.close()


def make_link(database_url: str) -> DatabaseLink:
    metrics = DatabaseMetrics.create(CollectorRegistry())
    return DatabaseLink(database_url, application_name="link", prepare=True, metrics=metrics, is_by_index=True)


def claim_and_finish(connection: psycopg.Connection, *, limit: int) -> list[ClaimedJob]:
    token = str(uuid4())
    claimed = claim(connection, queue="default", kinds=["noop"], limit=limit, worker_id=7, claim_token=token)
    ended = [FinishedAttempt(job.job_id, job.attempt, token, AttemptOutcome.COMPLETED, 1.0, 1.0) for job in claimed]
    assert finish(connection, ended, worker_name="w", monotonic_now=2.0) == []
    return claimed


def test_plans_that_were_made_for_a_small_table_do_not_read_the_whole_of_a_big_one(
    conn: psycopg.Connection, link: DatabaseLink
) -> None:
    conn.execute("ALTER TABLE sweephand.job SET (autovacuum_enabled = off)")
    conn.execute("VACUUM ANALYZE sweephand.job")
    with link.use() as connection:
        for _ in range(_WARM):
            insert_jobs(conn, 1)
            claim_and_finish(connection, limit=10)
    insert_jobs(conn, _GROWN)

    with link.use() as connection, connection.transaction():
        claimed = claim_and_finish(connection, limit=100)
        read = connection.execute(
            "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'sweephand.job'::regclass"
        ).fetchone()

    assert len(claimed) == 100
    assert read is not None
    sequentially, by_index = read
    assert sequentially == 0
    assert by_index < 10 * len(claimed)


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_a_poolers_sessions_stay_as_they_are_and_keep_no_plan(database_url: str) -> None:
    with transaction_pooler(database_url) as pooled_url:
        link = make_link(pooled_url)
        with link.use() as connection:
            for _ in range(_WARM):
                connection.execute("SELECT 1")
            setting = connection.execute("SHOW enable_seqscan").fetchone()
            kept = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        link.close()

    assert (setting, kept) == (("on",), (0,))

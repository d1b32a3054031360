from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.claim import claim
from sweephand.postgres.finish import FINISH, FinishedAttempt, finish
from tests.support.jobs import (
    count_by_state,
    insert_job,
    insert_jobs,
    open_connection,
    stored_attempts,
    stored_job,
)


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        yield connection


def _claim_one(conn: psycopg.Connection) -> FinishedAttempt:
    """Claim a job that ran from second 100 to second 102 and completed."""
    token = str(uuid4())
    (job,) = claim(conn, queue="default", kinds=["noop"], limit=1, worker_id=7, claim_token=token)
    return FinishedAttempt(job.job_id, job.attempt, token, AttemptOutcome.COMPLETED, 100.0, 102.0)


def _finish(conn: psycopg.Connection, *finished: FinishedAttempt) -> list[int]:
    return finish(conn, finished, worker_name="worker-a", monotonic_now=103.0)


@pytest.mark.parametrize(
    ("outcome", "delay_seconds", "state", "attempt"),
    [
        (AttemptOutcome.COMPLETED, None, "completed", 1),
        (AttemptOutcome.RETRIED, 16.0, "retryable", 1),
        (AttemptOutcome.DISCARDED, None, "discarded", 1),
        (AttemptOutcome.CANCELLED, None, "cancelled", 1),
        (AttemptOutcome.SNOOZED, 30.0, "scheduled", 0),
        (AttemptOutcome.INTERRUPTED, None, "available", 0),
    ],
)
def test_each_outcome_brings_the_job_into_its_state(
    conn: psycopg.Connection, outcome: AttemptOutcome, delay_seconds: float | None, state: str, attempt: int
) -> None:
    insert_job(conn)
    ended = _claim_one(conn)._replace(outcome=outcome, delay_seconds=delay_seconds, error="why")

    stale = _finish(conn, ended)

    job = stored_job(conn, ended.job_id)
    (recorded,) = stored_attempts(conn, ended.job_id)
    assert stale == []
    assert (job.state, job.attempt, job.claim_token) == (state, attempt, None)
    assert (job.finished_at is not None) == (state in {"completed", "discarded", "cancelled"})
    assert job.scheduled_in_seconds == pytest.approx(delay_seconds or 0, abs=5)
    assert (recorded.attempt, recorded.outcome, recorded.error) == (1, outcome.value, "why")
    assert recorded.worker_name == "worker-a"
    assert recorded.seconds == pytest.approx(2)


def test_many_outcomes_are_one_statement_and_each_has_its_own_effect(conn: psycopg.Connection) -> None:
    insert_jobs(conn, 4)
    attempts = [_claim_one(conn) for _ in range(4)]

    stale = _finish(
        conn,
        attempts[3],
        attempts[0]._replace(outcome=AttemptOutcome.RETRIED, delay_seconds=1.0, error="no", traceback="Traceback …"),
        attempts[2]._replace(outcome=AttemptOutcome.DISCARDED, error="no, never"),
        attempts[1],
    )

    assert stale == []
    assert count_by_state(conn) == {"completed": 2, "retryable": 1, "discarded": 1}
    (retried,) = stored_attempts(conn, attempts[0].job_id)
    assert (retried.error, retried.traceback) == ("no", "Traceback …")


def test_an_attempt_whose_job_was_given_to_another_claim_changes_nothing(conn: psycopg.Connection) -> None:
    insert_jobs(conn, 2)
    lost, kept = _claim_one(conn), _claim_one(conn)
    other_token = str(uuid4())
    conn.execute("UPDATE sweephand.job SET claim_token = %s WHERE id = %s", (other_token, lost.job_id))

    stale = _finish(conn, lost, kept)

    assert stale == [lost.job_id]
    assert stored_job(conn, lost.job_id).claim_token == other_token
    assert stored_attempts(conn, lost.job_id) == []
    assert stored_job(conn, kept.job_id).state == "completed"


def test_a_finish_that_is_sent_twice_changes_nothing_the_second_time(conn: psycopg.Connection) -> None:
    insert_job(conn)
    ended = _claim_one(conn)
    _finish(conn, ended)

    stale = _finish(conn, ended._replace(outcome=AttemptOutcome.RETRIED, delay_seconds=1.0))

    assert stale == [ended.job_id]
    assert stored_job(conn, ended.job_id).state == "completed"
    assert len(stored_attempts(conn, ended.job_id)) == 1


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (AttemptOutcome.RETRIED, "cancelled"),
        (AttemptOutcome.SNOOZED, "cancelled"),
        (AttemptOutcome.INTERRUPTED, "cancelled"),
        (AttemptOutcome.COMPLETED, "completed"),
        (AttemptOutcome.DISCARDED, "discarded"),
    ],
)
def test_a_job_that_was_to_be_cancelled_is_not_put_back(conn: psycopg.Connection, outcome: AttemptOutcome, state: str) -> None:
    insert_job(conn)
    ended = _claim_one(conn)._replace(outcome=outcome)
    conn.execute("UPDATE sweephand.job SET cancel_requested_at = now() WHERE id = %s", (ended.job_id,))

    _finish(conn, ended)

    assert stored_job(conn, ended.job_id).state == state
    assert stored_attempts(conn, ended.job_id)[0].outcome == state


def test_a_retried_job_keeps_its_key_and_a_finished_one_gives_it_back(conn: psycopg.Connection) -> None:
    insert_job(conn, unique_key=b"k" * 32)
    retried = _claim_one(conn)._replace(outcome=AttemptOutcome.RETRIED, delay_seconds=0.0)
    _finish(conn, retried)
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert_job(conn, unique_key=b"k" * 32)

    _finish(conn, _claim_one(conn))

    insert_job(conn, unique_key=b"k" * 32)
    assert count_by_state(conn) == {"completed": 1, "available": 1}


@pytest.mark.parametrize("is_analyzed", [True, False])
@pytest.mark.parametrize("plan_mode", ["force_custom_plan", "force_generic_plan"])
def test_the_finish_finds_each_job_by_its_primary_key(
    conn: psycopg.Connection,
    is_analyzed: bool,  # noqa: FBT001
    plan_mode: str,
) -> None:
    insert_jobs(conn, 20_000)
    if is_analyzed:
        conn.execute("VACUUM ANALYZE sweephand.job")
    conn.execute("SELECT set_config('plan_cache_mode', %s, false)", (plan_mode,))
    claimed = claim(conn, queue="default", kinds=["noop"], limit=200, worker_id=7, claim_token=str(uuid4()))
    ids = "{" + ",".join(str(job.job_id) for job in claimed) + "}"
    ones = "{" + ",".join("1" for _ in claimed) + "}"
    bound: dict[str, object] = {
        "ids": ids,
        "attempts": ones,
        "claim_tokens": ones.replace("1", str(uuid4())),
        "outcomes": ones.replace("1", "completed"),
        "started": ones,
        "ended": ones,
        "delays": [],
        "errors": [],
        "tracebacks": [],
        "now": 2.0,
        "worker_name": "worker-a",
    }

    plan = "\n".join(str(line) for (line,) in conn.execute("EXPLAIN " + FINISH, bound, prepare=True).fetchall())

    assert "Seq Scan on job" not in plan, plan
    assert "job_pkey" in plan, plan

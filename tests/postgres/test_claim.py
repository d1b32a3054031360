from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest

from sweephand.postgres.claim import CLAIM, ClaimedJob, HeldAttempt, claim, release, release_claim
from sweephand.postgres.queues import limit_queue, pause_queue, resume_queue
from tests.support.jobs import (
    count_by_state,
    insert_job,
    insert_jobs,
    insert_worker,
    open_connection,
    stored_attempts,
    stored_job,
)


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        yield connection


def _claim(
    conn: psycopg.Connection,
    *,
    queue: str = "default",
    limit: int = 10,
    kinds: tuple[str, ...] = ("noop",),
    token: str | None = None,
    worker_id: int = 7,
    is_queue_limited: bool = False,
) -> list[ClaimedJob]:
    return claim(
        conn,
        queue=queue,
        kinds=kinds,
        limit=limit,
        worker_id=worker_id,
        claim_token=token or str(uuid4()),
        is_queue_limited=is_queue_limited,
    )


def test_a_claimed_job_is_running_with_one_more_attempt_and_the_token_of_its_claim(conn: psycopg.Connection) -> None:
    token = str(uuid4())
    job_id = insert_job(conn, args={"product_id": 9}, state="retryable", attempt=3)

    (claimed,) = _claim(conn, token=token)

    job = stored_job(conn, job_id)
    assert (claimed.job_id, claimed.kind, claimed.attempt, claimed.max_attempts) == (job_id, "noop", 4, 25)
    assert claimed.args == '{"product_id": 9}'
    assert (job.state, job.attempt, job.claim_token, job.worker_id) == ("running", 4, token, 7)


def test_the_longest_due_jobs_are_claimed_first_whatever_their_ids(conn: psycopg.Connection) -> None:
    younger = insert_job(conn, in_seconds=-10)
    older = insert_job(conn, in_seconds=-20)
    insert_job(conn, in_seconds=-5)

    claimed = _claim(conn, limit=2)

    assert [job.job_id for job in claimed] == [older, younger]
    assert [round(job.waited_seconds) for job in claimed] == [20, 10]


def test_jobs_of_the_future_of_other_queues_and_of_unknown_kinds_are_left_alone(conn: psycopg.Connection) -> None:
    insert_job(conn, state="scheduled", in_seconds=60)
    insert_job(conn, queue="other")
    unknown = insert_job(conn, "introduced_by_a_newer_release")

    claimed = _claim(conn)

    assert claimed == []
    assert stored_job(conn, unknown).attempt == 0


def test_a_paused_queue_gives_nothing_until_it_is_resumed(conn: psycopg.Connection) -> None:
    insert_job(conn)
    pause_queue(conn, "default", by="ada", note="the warehouse moves")

    while_paused = _claim(conn)
    resume_queue(conn, "default")
    afterwards = _claim(conn)

    assert (len(while_paused), len(afterwards)) == (0, 1)


def test_a_job_that_is_unique_until_its_start_gives_its_key_away_with_the_claim(conn: psycopg.Connection) -> None:
    until_start = insert_job(conn, unique_key=b"a" * 32, unique_until_start=True)
    until_finished = insert_job(conn, unique_key=b"b" * 32)

    _claim(conn)

    assert not stored_job(conn, until_start).has_key
    assert stored_job(conn, until_finished).has_key


def test_workers_that_claim_at_once_never_get_the_same_job(database_url: str, conn: psycopg.Connection) -> None:
    insert_jobs(conn, 200)
    start = Barrier(4)

    def claim_all() -> list[int]:
        mine: list[int] = []
        with open_connection(database_url) as own:
            start.wait(10)
            while jobs := _claim(own, limit=7):
                mine += [job.job_id for job in jobs]
        return mine

    with ThreadPoolExecutor(4) as pool:
        claimed = [job_id for future in [pool.submit(claim_all) for _ in range(4)] for job_id in future.result(30)]

    assert len(claimed) == 200
    assert len(set(claimed)) == 200


def test_a_released_job_is_as_if_it_had_not_been_claimed(conn: psycopg.Connection) -> None:
    token = str(uuid4())
    job_id = insert_job(conn)
    (claimed,) = _claim(conn, token=token)

    released = release(conn, [HeldAttempt(claimed.job_id, claimed.attempt, token)])

    job = stored_job(conn, job_id)
    assert released == 1
    assert (job.state, job.attempt, job.claim_token, job.worker_id) == ("available", 0, None, None)
    assert stored_attempts(conn, job_id) == []


def test_a_job_that_was_claimed_anew_is_not_released_by_the_older_claim(conn: psycopg.Connection) -> None:
    token = str(uuid4())
    job_id = insert_job(conn)
    (claimed,) = _claim(conn, token=token)
    held = [HeldAttempt(claimed.job_id, claimed.attempt, token)]
    release(conn, held)
    _claim(conn)

    released = release(conn, held)

    assert released == 0
    assert stored_job(conn, job_id).state == "running"


def test_a_job_to_be_cancelled_is_cancelled_when_it_is_released(conn: psycopg.Connection) -> None:
    token = str(uuid4())
    job_id = insert_job(conn)
    (claimed,) = _claim(conn, token=token)
    conn.execute("UPDATE sweephand.job SET cancel_requested_at = now() WHERE id = %s", (job_id,))

    release(conn, [HeldAttempt(claimed.job_id, claimed.attempt, token)])

    assert stored_job(conn, job_id).state == "cancelled"


def test_a_claim_whose_answer_was_lost_is_given_back_whole(conn: psycopg.Connection) -> None:
    insert_jobs(conn, 3)
    lost, other = str(uuid4()), str(uuid4())
    _claim(conn, limit=2, token=lost)
    _claim(conn, limit=1, token=other)

    released = release_claim(conn, worker_id=7, claim_token=lost)

    assert released == 2
    assert count_by_state(conn) == {"available": 2, "running": 1}


def test_a_released_job_is_notified(database_url: str, conn: psycopg.Connection) -> None:
    token = str(uuid4())
    insert_job(conn)
    (claimed,) = _claim(conn, token=token)
    with open_connection(database_url) as listening:
        listening.execute('LISTEN "sweephand.default"')

        release(conn, [HeldAttempt(claimed.job_id, claimed.attempt, token)])

        (notify,) = listening.notifies(timeout=5, stop_after=1)
    assert notify.channel == "sweephand.default"


def test_a_queue_with_a_limit_gives_nothing_to_who_does_not_know_of_it(conn: psycopg.Connection) -> None:
    insert_jobs(conn, 5)
    limit_queue(conn, "default", concurrency_limit=2)

    unaware = _claim(conn)
    aware = _claim(conn, is_queue_limited=True)
    once_more = _claim(conn, is_queue_limited=True)

    assert (len(unaware), len(aware), len(once_more)) == (0, 2, 0)


def test_workers_that_claim_at_once_never_exceed_a_queues_limit(database_url: str, conn: psycopg.Connection) -> None:
    insert_jobs(conn, 50)
    limit_queue(conn, "default", concurrency_limit=5)
    start = Barrier(4)

    def claim_some() -> int:
        with open_connection(database_url) as own:
            start.wait(10)
            return sum(len(_claim(own, limit=2, is_queue_limited=True)) for _ in range(5))

    with ThreadPoolExecutor(4) as pool:
        claimed = sum(future.result(30) for future in [pool.submit(claim_some) for _ in range(4)])

    assert claimed == 5


def test_a_kind_whose_name_means_something_in_an_array_is_claimed(conn: psycopg.Connection) -> None:
    job_id = insert_job(conn, "null")

    assert [job.job_id for job in _claim(conn, kinds=("null", "noop"))] == [job_id]
    assert _claim(conn, kinds=()) == []


def test_only_the_claims_own_commit_does_not_wait_for_the_disk(conn: psycopg.Connection) -> None:
    insert_jobs(conn, 2)
    conn.execute("SET synchronous_commit = on")

    with conn.transaction():
        _claim(conn, limit=1)
        within = conn.execute("SHOW synchronous_commit").fetchone()
    _claim(conn, limit=1)
    afterwards = conn.execute("SHOW synchronous_commit").fetchone()

    assert (within, afterwards) == (("off",), ("on",))


@pytest.mark.parametrize("is_analyzed", [True, False])
def test_the_claim_never_scans_the_table(conn: psycopg.Connection, is_analyzed: bool) -> None:  # noqa: FBT001
    _fill(conn)
    if is_analyzed:
        conn.execute("VACUUM ANALYZE sweephand.job")
    bound = {"queue": "default", "kinds": ["noop"], "limit": 200, "worker_id": 7, "claim_token": str(uuid4())}

    plan = "\n".join(str(line) for (line,) in conn.execute("EXPLAIN (ANALYZE, BUFFERS) " + CLAIM, bound).fetchall())

    assert "Seq Scan on job" not in plan, plan
    assert "Index Scan using job_claimable" in plan, plan
    assert "job_pkey" in plan, plan


def _fill(conn: psycopg.Connection) -> None:
    """History, jobs of the future, and few that are due."""
    insert_worker(conn)
    conn.execute(
        """
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at, finished_at)
        SELECT 'noop', 'default', CASE WHEN n <= 15000 THEN 'completed' WHEN n <= 19500 THEN 'scheduled' ELSE 'available' END,
            '{}', 25, 600, now() + CASE WHEN n <= 19500 THEN interval '1 hour' ELSE interval '-1 second' END,
            CASE WHEN n <= 15000 THEN now() END
        FROM generate_series(1, 20000) n
        """
    )

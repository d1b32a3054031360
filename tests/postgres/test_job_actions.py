"""Verbs on jobs: what the table of model/lifecycle.py says is what the database does, also among workers."""

from collections.abc import Iterator
from threading import Barrier, Thread

import psycopg
import pytest

from sweephand.model.lifecycle import FINISHED, LIFE, UNFINISHED, VERBS, Effect, JobVerb, Refusal
from sweephand.model.outcomes import AttemptOutcome
from sweephand.model.states import JobState
from sweephand.postgres.claim import HeldAttempt, claim, release
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.postgres.job_actions import BATCH_SIZE, act_on_jobs, find_jobs
from sweephand.postgres.job_filter import JobFilter
from tests.support.jobs import (
    count_by_state,
    insert_job,
    insert_jobs,
    insert_worker,
    open_connection,
    stored_job,
    stored_jobs,
)
from tests.support.waiting import until

TOKEN = "11111111-1111-1111-1111-111111111111"
KEY = bytes(32)


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as opened:
        yield opened


def _insert(connection: psycopg.Connection, state: JobState, *, max_attempts: int = 3) -> int:
    """Add a job in this state, claimed once if it was ever claimed."""
    if state is JobState.RUNNING:
        job_id = insert_job(connection, max_attempts=max_attempts)
        claim(connection, queue="default", kinds=["noop"], limit=1, worker_id=insert_worker(connection), claim_token=TOKEN)
        return job_id
    return insert_job(
        connection,
        state=state.value,
        attempt=0 if state in {JobState.SCHEDULED, JobState.AVAILABLE} else 1,
        max_attempts=max_attempts,
        in_seconds=600 if state in {JobState.SCHEDULED, JobState.RETRYABLE} else 0,
        finished_ago_seconds=60 if state in FINISHED else None,
    )


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("verb", list(JobVerb))
def test_a_verb_does_in_each_state_what_the_table_says(connection: psycopg.Connection, verb: JobVerb, state: JobState) -> None:
    job_id = _insert(connection, state)

    report = act_on_jobs(connection, verb, [job_id], by="ana", note=None)

    after = [JobState(job.state) for job in stored_jobs(connection)]
    match VERBS[verb].by_state[state]:
        case Effect(state=None):
            assert after == []
        case Effect(state=expected):
            assert [(job.id, job.before) for job in report.changed] == [(job_id, state)]
            assert after == [expected]
        case Refusal(reason=reason):
            assert [job.reason for job in report.refused] == [f"job {job_id} {reason}"]
            assert after == [state]


# LOST is written by a rescue: see test_rescue.py.
@pytest.mark.parametrize("outcome", [outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.LOST])
def test_an_attempt_that_ends_leads_where_the_table_says(connection: psycopg.Connection, outcome: AttemptOutcome) -> None:
    job_id = _insert(connection, JobState.RUNNING)

    finish(
        connection,
        [FinishedAttempt(job_id, 1, TOKEN, outcome, started=1.0, ended=2.0, delay_seconds=60)],
        worker_name="worker-a",
        monotonic_now=3.0,
    )

    targets = [way.target for way in LIFE if way.event == outcome.value and way.sources == (JobState.RUNNING,)]
    assert [JobState(stored_job(connection, job_id).state)] == targets


def test_a_claim_that_is_given_back_leads_where_the_table_says(connection: psycopg.Connection) -> None:
    job_id = _insert(connection, JobState.RUNNING)

    release(connection, [HeldAttempt(job_id, 1, TOKEN)])

    assert [JobState(stored_job(connection, job_id).state)] == [way.target for way in LIFE if way.event == "given back"]


def test_every_state_is_left_or_final_and_every_verb_knows_it() -> None:
    reached = {way.target for way in LIFE}
    left = {source for way in LIFE for source in way.sources}

    assert reached == set(JobState)
    assert left == set(UNFINISHED)
    assert set(UNFINISHED) | set(FINISHED) == set(JobState)
    for rule in VERBS.values():
        assert set(rule.by_state) == set(JobState)
        assert set(rule.unless_said) <= set(rule.allowed())


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_retried_job_has_an_attempt_left_and_keeps_what_it_had(connection: psycopg.Connection, attempt: int) -> None:
    job_id = insert_job(connection, state="discarded", attempt=attempt, max_attempts=3, finished_ago_seconds=60)

    act_on_jobs(connection, JobVerb.RETRY, [job_id], by="ana", note=None)

    row = connection.execute("SELECT attempt, max_attempts FROM sweephand.job WHERE id = %s", [job_id]).fetchone()
    assert row == (attempt, max(3, attempt + 1))


def test_a_retried_job_forgets_that_it_was_cancelled(connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    act_on_jobs(connection, JobVerb.CANCEL, [job_id], by="ana", note="a slip")

    act_on_jobs(connection, JobVerb.RETRY, [job_id], by="ana", note=None)

    row = connection.execute("SELECT cancel_requested_at, cancel_reason FROM sweephand.job WHERE id = %s", [job_id]).fetchone()
    assert row == (None, None)


def test_a_running_job_that_was_asked_to_stop_ends_as_cancelled(connection: psycopg.Connection) -> None:
    job_id = _insert(connection, JobState.RUNNING)
    act_on_jobs(connection, JobVerb.CANCEL, [job_id], by="ana", note=None)

    finish(
        connection,
        [FinishedAttempt(job_id, 1, TOKEN, AttemptOutcome.RETRIED, started=1.0, ended=2.0, delay_seconds=60)],
        worker_name="worker-a",
        monotonic_now=3.0,
    )

    assert stored_job(connection, job_id).state == "cancelled"


def test_a_twin_that_is_enqueued_meanwhile_wins_and_the_others_are_retried(
    connection: psycopg.Connection, database_url: str
) -> None:
    rival = insert_job(connection, state="discarded", unique_key=KEY, finished_ago_seconds=60)
    other = insert_job(connection, state="discarded", unique_key=bytes([1] * 32), finished_ago_seconds=60)
    reports: list[tuple[int, ...]] = []

    def retry() -> None:
        with open_connection(database_url) as mine:
            report = act_on_jobs(mine, JobVerb.RETRY, [rival, other], by="ana", note=None)
            reports.append(tuple(job.id for job in report.changed))

    with open_connection(database_url) as enqueuer, enqueuer.transaction():
        insert_job(enqueuer, unique_key=KEY)
        thread = Thread(target=retry)
        thread.start()
        until(lambda: _is_waiting(connection), message="the retry waits for the twin's transaction")
    thread.join(30)

    assert reports == [(other,)]
    assert stored_job(connection, rival).state == "discarded"


def test_a_job_that_is_claimed_meanwhile_is_left_alone(connection: psycopg.Connection, database_url: str) -> None:
    job_id = insert_job(connection)
    reports: list[tuple[str, ...]] = []

    def discard() -> None:
        with open_connection(database_url) as mine:
            report = act_on_jobs(mine, JobVerb.DISCARD, [job_id], by="ana", note=None)
            reports.append(tuple(job.reason for job in report.refused))

    worker_id = insert_worker(connection)
    with open_connection(database_url) as worker, worker.transaction():
        claim(worker, queue="default", kinds=["noop"], limit=1, worker_id=worker_id, claim_token=TOKEN)
        thread = Thread(target=discard)
        thread.start()
        until(lambda: _is_waiting(connection), message="the verb waits for the claim")
    thread.join(30)

    assert reports == [(f"job {job_id} is running; wait for it or cancel it first",)]
    assert stored_job(connection, job_id).state == "running"


def test_a_cancel_that_meets_a_claim_asks_the_worker(connection: psycopg.Connection, database_url: str) -> None:
    job_id = insert_job(connection)
    worker_id = insert_worker(connection)

    def cancel() -> None:
        with open_connection(database_url) as mine:
            act_on_jobs(mine, JobVerb.CANCEL, [job_id], by="ana", note=None)

    with open_connection(database_url) as worker, worker.transaction():
        claim(worker, queue="default", kinds=["noop"], limit=1, worker_id=worker_id, claim_token=TOKEN)
        thread = Thread(target=cancel)
        thread.start()
        until(lambda: _is_waiting(connection), message="the verb waits for the claim")
    thread.join(30)

    row = connection.execute("SELECT state, cancel_requested_at IS NOT NULL FROM sweephand.job").fetchone()
    assert row == ("running", True)


def test_bulk_verbs_beside_working_workers_lose_and_double_nothing(connection: psycopg.Connection, database_url: str) -> None:
    insert_jobs(connection, 3 * BATCH_SIZE)
    worker_id = insert_worker(connection)
    barrier = Barrier(2)

    def work() -> None:
        with open_connection(database_url) as mine:
            barrier.wait(10)
            while jobs := claim(mine, queue="default", kinds=["noop"], limit=40, worker_id=worker_id, claim_token=TOKEN):
                ended = [
                    FinishedAttempt(job.job_id, job.attempt, TOKEN, AttemptOutcome.COMPLETED, started=1.0, ended=2.0)
                    for job in jobs
                ]
                finish(mine, ended, worker_name="worker-a", monotonic_now=3.0)

    thread = Thread(target=work)
    thread.start()
    which = JobFilter(states=(JobState.AVAILABLE,))
    found = find_jobs(connection, which)
    barrier.wait(10)
    report = act_on_jobs(connection, JobVerb.DISCARD, found.ids, by="ana", note=None, which=which)
    thread.join(30)

    counts = count_by_state(connection)
    assert counts.get("discarded", 0) == len(report.changed)
    assert counts.get("completed", 0) == len(report.refused)
    assert sum(counts.values()) == len(found.ids) == 3 * BATCH_SIZE


def _is_waiting(connection: psycopg.Connection) -> bool:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).fetchone()
    return row is not None and row[0] > 0

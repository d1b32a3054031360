"""Jobs under arbitrary workers, crashes and operators: after each step the database is what a model of it says.

The model is the table of states in `model/lifecycle.py` read by a person: what a claim, an end, a rescue and an operator's
verb do to one job. Whatever happens, an attempt that was taken away changes nothing, an attempt is counted and recorded once,
and two unfinished jobs never have the same key.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from psycopg import sql

from sweephand import App, enqueue
from sweephand.model.lifecycle import VERBS, Effect, JobVerb
from sweephand.model.outcomes import AttemptOutcome
from sweephand.model.states import JobState
from sweephand.postgres.claim import HeldAttempt, claim, release
from sweephand.postgres.connect import connect_async
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.postgres.job_actions import act_on_jobs
from sweephand.postgres.rescue import rescue
from tests.support.jobs import insert_worker, open_connection

app = App("model")

WORKERS = 3
WAITING = (JobState.SCHEDULED, JobState.AVAILABLE, JobState.RETRYABLE)
FINISHED = (JobState.COMPLETED, JobState.DISCARDED, JobState.CANCELLED)
ENDS = [outcome for outcome in AttemptOutcome if outcome is not AttemptOutcome.LOST]
worker = st.integers(0, WORKERS - 1)


@app.job(max_attempts=3)
def mend(key: str) -> None:
    """Mend the row of this key."""


@dataclass(slots=True)
class ModelJob:
    """What a job should be."""

    key: str
    state: JobState = JobState.AVAILABLE
    attempt: int = 0
    max_attempts: int = 3
    token: str | None = None
    worker: int | None = None
    is_to_be_cancelled: bool = False
    recorded: list[str] = field(default_factory=list)


class Held(NamedTuple):
    """An attempt that a worker believes to hold."""

    job_id: int
    attempt: int
    token: str


class JobLife(RuleBasedStateMachine):
    """Some workers, an application that enqueues, an operator, and the leader's rescue."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.conn = open_connection(self.url)
        for table in ("job", "job_attempt", "worker", "audit"):
            self.conn.execute(sql.SQL("DELETE FROM sweephand.{}").format(sql.Identifier(table)))
        self.workers = [insert_worker(self.conn, f"worker-{number}") for number in range(WORKERS)]
        self.silent: set[int] = set()
        self.jobs: dict[int, ModelJob] = {}
        self.held: list[Held] = []
        for key in "ab":
            self.enqueue_one(key)

    def teardown(self) -> None:
        self.conn.close()

    @rule(key=st.sampled_from("abc"))
    def enqueue_one(self, key: str) -> None:
        twins = [job_id for job_id, job in self.jobs.items() if job.key == key and job.state not in FINISHED]

        with self.conn.transaction():
            outcome = enqueue(self.conn, mend, key=key)

        if twins:
            assert (outcome.is_duplicate, outcome.job_id) == (True, twins[0])
        else:
            assert not outcome.is_duplicate
            self.jobs[outcome.job_id] = ModelJob(key)

    @precondition(lambda self: any(job.state in WAITING for job in self.jobs.values()))
    @rule(number=worker)
    def claim_one(self, number: int) -> None:
        token = str(uuid4())
        claimable = {job_id for job_id, job in self.jobs.items() if job.state in WAITING}

        claimed = claim(self.conn, queue="default", kinds=["mend"], limit=1, worker_id=self.workers[number], claim_token=token)

        (row,) = claimed
        job = self.jobs[row.job_id]
        assert row.job_id in claimable
        job.state, job.attempt, job.token, job.worker = JobState.RUNNING, job.attempt + 1, token, number
        assert (row.attempt, row.max_attempts) == (job.attempt, job.max_attempts)
        self.held.append(Held(row.job_id, row.attempt, token))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=st.sampled_from(ENDS))
    def end(self, data: st.DataObject, outcome: AttemptOutcome) -> None:
        attempt = self._some_attempt(data)
        job = self._holder(attempt)
        if outcome is AttemptOutcome.RETRIED and job is not None and job.attempt >= job.max_attempts:
            outcome = AttemptOutcome.DISCARDED
        delay = 0.0 if outcome in {AttemptOutcome.RETRIED, AttemptOutcome.SNOOZED} else None
        ended = FinishedAttempt(*attempt, outcome, 1.0, 2.0, delay)

        stale = finish(self.conn, [ended], worker_name="w", monotonic_now=3.0)

        assert stale == ([] if job is not None else [attempt.job_id])
        if job is not None:
            self._end(job, outcome)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        attempt = self._some_attempt(data)
        job = self._holder(attempt)

        released = release(self.conn, [HeldAttempt(*attempt)])

        assert released == (job is not None)
        if job is not None:
            job.attempt -= 1
            job.state = JobState.CANCELLED if job.is_to_be_cancelled else JobState.AVAILABLE
            job.token = None

    @rule(number=worker)
    def fall_silent(self, number: int) -> None:
        self.conn.execute(
            "UPDATE sweephand.worker SET heartbeat_at = now() - interval '1 hour' WHERE id = %s", (self.workers[number],)
        )
        self.silent.add(number)

    @precondition(lambda self: self.silent)
    @rule(number=worker)
    def be_heard_of_again(self, number: int) -> None:
        self.conn.execute("UPDATE sweephand.worker SET heartbeat_at = now() WHERE id = %s", (self.workers[number],))
        self.silent.discard(number)

    @precondition(lambda self: self.silent)
    @rule()
    def rescue_all(self) -> None:
        lost = {job_id for job_id, job in self.jobs.items() if job.state is JobState.RUNNING and job.worker in self.silent}

        rescued = asyncio.run(self._rescue())

        assert rescued == lost
        for job_id in lost:
            job = self.jobs[job_id]
            self._end(job, AttemptOutcome.LOST)
        # The backoff would make the next claim wait; when it is due is tested elsewhere.
        self.conn.execute("UPDATE sweephand.job SET scheduled_at = now() WHERE state = 'retryable'")

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), verb=st.sampled_from(list(JobVerb)))
    def act(self, data: st.DataObject, verb: JobVerb) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.jobs)))
        job = self.jobs[job_id]
        rule_ = VERBS[verb].by_state[job.state]
        has_twin = job.state in FINISHED and any(
            other.key == job.key and other.state not in FINISHED for other in self.jobs.values()
        )
        is_allowed = isinstance(rule_, Effect) and not (verb is JobVerb.RETRY and has_twin)

        report = act_on_jobs(self.conn, verb, [job_id], by="ada", note=None)

        assert len(report.changed) == is_allowed
        if is_allowed and isinstance(rule_, Effect):
            self._act(job_id, verb, rule_)

    @invariant()
    def the_database_is_as_the_model_says(self) -> None:
        rows = self.conn.execute(
            """
            SELECT id, state, attempt, max_attempts, claim_token::text, ARRAY (
                SELECT outcome FROM sweephand.job_attempt WHERE job_id = job.id ORDER BY ended_at, started_at)
            FROM sweephand.job ORDER BY id
            """
        ).fetchall()
        stored = {
            job_id: (state, attempt, most, token, sorted(outcomes)) for job_id, state, attempt, most, token, outcomes in rows
        }
        assert stored == {
            job_id: (job.state.value, job.attempt, job.max_attempts, job.token, sorted(job.recorded))
            for job_id, job in self.jobs.items()
        }

    def _some_attempt(self, data: st.DataObject) -> Held:
        """Choose the last one that was claimed, mostly; any other is likely to be stale."""
        back: int = data.draw(st.sampled_from([0, 0, 0, *range(len(self.held))]))
        return self.held[-1 - back]

    def _holder(self, attempt: Held) -> ModelJob | None:
        job = self.jobs.get(attempt.job_id)
        return job if job is not None and job.token == attempt.token else None

    def _end(self, job: ModelJob, outcome: AttemptOutcome) -> None:
        job.token = None
        if outcome in {AttemptOutcome.SNOOZED, AttemptOutcome.INTERRUPTED}:
            job.attempt -= 1
        is_last = job.attempt >= job.max_attempts
        state = {
            AttemptOutcome.COMPLETED: JobState.COMPLETED,
            AttemptOutcome.RETRIED: JobState.RETRYABLE,
            AttemptOutcome.DISCARDED: JobState.DISCARDED,
            AttemptOutcome.CANCELLED: JobState.CANCELLED,
            AttemptOutcome.SNOOZED: JobState.SCHEDULED,
            AttemptOutcome.INTERRUPTED: JobState.AVAILABLE,
            AttemptOutcome.LOST: JobState.DISCARDED if is_last else JobState.RETRYABLE,
        }[outcome]
        if job.is_to_be_cancelled and (state not in FINISHED or outcome is AttemptOutcome.LOST):
            state = JobState.CANCELLED
        job.state = state
        is_cancelled = state is JobState.CANCELLED and outcome is not AttemptOutcome.LOST
        job.recorded.append("cancelled" if is_cancelled else outcome.value)

    def _act(self, job_id: int, verb: JobVerb, effect: Effect) -> None:
        job = self.jobs[job_id]
        match verb, effect.state:
            case JobVerb.DELETE, _:
                del self.jobs[job_id]
            case JobVerb.CANCEL, JobState.RUNNING:
                job.is_to_be_cancelled = True
            case JobVerb.RETRY, _:
                job.state, job.is_to_be_cancelled = JobState.AVAILABLE, False
                job.max_attempts = max(job.max_attempts, job.attempt + 1)
            case _, state:
                assert state is not None
                job.state = state
                job.is_to_be_cancelled = job.is_to_be_cancelled or verb is JobVerb.CANCEL

    async def _rescue(self) -> set[int]:
        connection: psycopg.AsyncConnection = await connect_async(self.url, application_name="test")
        async with connection:
            report = await rescue(connection, rescue_after_seconds=30)
        return {job.job_id for job in report.jobs}


@pytest.mark.timeout(240)
def test_whatever_happens_the_database_is_as_the_model_says(database_url: str) -> None:
    class JobLifeHere(JobLife):
        url = database_url

    run_state_machine_as_test(
        JobLifeHere,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

"""Run one attempt: decode its arguments, call the function, and decide how it ended."""

import json
import time
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from functools import partial
from threading import Event

import structlog
from dramatiq.asyncio import async_to_sync
from structlog.contextvars import bind_contextvars

from sweephand.app import App
from sweephand.context import JobContext, set_running_job
from sweephand.job import Job
from sweephand.model.errors import ArgumentsError
from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.finish import FinishedAttempt
from sweephand.tracing import attempt_span, attempt_tracer
from sweephand.worker.attempts import Attempt
from sweephand.worker.interrupts import Interrupts
from sweephand.worker.job_log import JobLog
from sweephand.worker.verdicts import Verdict, verdict_on, verdict_on_arguments

# From where the exception is caught to the job's function: the frames of `run` and `_call`.
_OWN_FRAMES = 2
_JSON = json.JSONDecoder()
_FAILED = (AttemptOutcome.RETRIED, AttemptOutcome.DISCARDED)


class Runner:
    """Run attempts in the threads that call it. Never raises: an attempt's end is written on the attempt."""

    def __init__(self, app: App, *, interrupts: Interrupts, log: JobLog, stopping: Event) -> None:
        self._functions = {kind: _callable(job) for kind, job in app.jobs.items()}
        self._interrupts = interrupts
        self._log = log
        self._stopping = stopping
        self._on_error = app.on_error
        self._tracer = attempt_tracer()

    def run(self, attempt: Attempt) -> None:
        """Run the attempt and set `finished`; once the worker stops, leave it None: the attempt is not started."""
        if self._stopping.is_set():
            return
        attempt.started = time.monotonic()
        # A context of its own, so that nothing that a job sets is seen by the next one in this thread.
        context = copy_context()
        try:
            arguments = _decode(attempt)
        except Exception as error:  # noqa: BLE001 - bad arguments are data about this job, whatever they raise
            self._end(attempt, verdict_on_arguments(error), error, context)
            return
        self._log.started(attempt, arguments)
        is_done = False
        try:
            try:
                self._interrupts.enter(attempt)
                context.run(self._call, attempt, arguments)
                is_done = True
            finally:
                self._interrupts.leave(attempt)
        except BaseException as error:  # noqa: BLE001 - SystemExit out of a job is the job's failure, not this thread's end
            self._interrupts.forget(attempt)
            if not is_done:
                self._end(attempt, verdict_on(attempt, error, skip_frames=_OWN_FRAMES), error, context)
                return
        self._interrupts.forget(attempt)
        attempt.ended = time.monotonic()
        claimed = attempt.claimed
        attempt.finished = FinishedAttempt(
            claimed.job_id,
            claimed.attempt,
            attempt.claim_token,
            AttemptOutcome.COMPLETED,
            attempt.started,
            attempt.ended,
        )
        self._log.completed(attempt)

    def _call(self, attempt: Attempt, arguments: Mapping[str, object]) -> None:
        job = _context(attempt)
        # What the job itself logs names the job too. Nothing has to be taken back: the context ends with the attempt.
        bind_contextvars(job=job.job_id, kind=job.kind, attempt=job.attempt)
        if job.tick_id is not None:
            bind_contextvars(tick=job.tick_id)
        function = self._functions[attempt.job.kind]
        set_running_job(job)
        if self._tracer is None:
            function(**arguments)
        else:
            with attempt_span(self._tracer, job, enqueued_in=attempt.claimed.trace_context):
                function(**arguments)

    def _end(self, attempt: Attempt, verdict: Verdict, error: BaseException, context: Context) -> None:
        attempt.ended = time.monotonic()
        attempt.discard_reason = verdict.discard_reason
        attempt.finished = FinishedAttempt(
            *attempt.held,
            verdict.outcome,
            attempt.started,
            attempt.ended,
            verdict.delay_seconds,
            verdict.error,
            verdict.traceback,
        )
        if attempt.is_completing:
            # Untold until it is known whether the completion was committed.
            attempt.tell_end = partial(self._log.ended, attempt, verdict)
        else:
            self._log.ended(attempt, verdict)
        if self._on_error is not None and verdict.outcome in _FAILED:
            try:
                context.run(self._on_error, _context(attempt), error)
            except BaseException:  # noqa: BLE001 - the application's hook: its failure must not become the attempt's or the thread's
                structlog.get_logger().exception("error_hook_failed", job_id=attempt.claimed.job_id)


def _context(attempt: Attempt) -> JobContext:
    claimed = attempt.claimed
    return JobContext(
        claimed.job_id,
        claimed.kind,
        attempt.queue,
        claimed.attempt,
        claimed.max_attempts,
        claimed.tick_id,
        claimed.created_at,
        attempt,
    )


def _decode(attempt: Attempt) -> dict[str, object]:
    stored, _ = _JSON.raw_decode(attempt.claimed.args)  # text of a jsonb, so nothing stands around it
    if not isinstance(stored, dict):
        raise ArgumentsError(f"{attempt.claimed.kind}: the stored arguments are no JSON object")
    return attempt.job.decode(stored)


def _callable(job: Job[...]) -> Callable[..., object]:
    """Return the function; an async one runs on the process's event loop while the calling thread waits for it."""
    return async_to_sync(job.function) if job.is_async else job.function  # type: ignore[arg-type]  # is_async says it is a coroutine function

"""Run one attempt in the caller's transaction and decide how it ended, as a worker would."""

import asyncio
import inspect
import json
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING

from sweephand.context import JobContext, running_job
from sweephand.job import Job
from sweephand.model.errors import ArgumentsError
from sweephand.model.outcomes import AttemptOutcome, JobSignal
from sweephand.postgres.callers_transaction import Plan
from sweephand.postgres.finish import FinishedAttempt
from sweephand.postgres.inline import InlineClaim, finish_one
from sweephand.testing.connections import async_savepoint, savepoint
from sweephand.testing.report import InlineAttempt
from sweephand.worker.attempts import Attempt
from sweephand.worker.verdicts import Verdict, verdict_on, verdict_on_arguments

if TYPE_CHECKING:
    from sweephand.postgres.callers_transaction import AnyAsync, AnySync


class RunningAttempt:
    """Be an attempt from its claim to its end. Its function runs in a savepoint, which what it raises rolls back."""

    def __init__(self, claim: InlineClaim, job: Job[...]) -> None:
        self._attempt = Attempt(
            claim.job, job=job, queue=claim.queue, claim_token=claim.claim_token, claimed_monotonic=time.monotonic()
        )
        self._attempt.started = time.monotonic()
        self._verdict = Verdict(AttemptOutcome.COMPLETED)
        self._error: Exception | None = None

    def run(self, connection: "AnySync") -> None:
        """Call the function; an async one on an event loop of its own."""
        arguments = self._decode()
        if arguments is None:
            return
        try:
            with savepoint(connection), running_job(self._context()):
                result = self._attempt.job.function(**arguments)
                if inspect.iscoroutine(result):
                    _run_coroutine(result, kind=self._attempt.job.kind)
        except Exception as error:  # noqa: BLE001 - a job may raise anything; it is the attempt's end
            self._fail(error)

    async def run_async(self, connection: "AnyAsync") -> None:
        """Call the function, and await it if it is async."""
        arguments = self._decode()
        if arguments is None:
            return
        try:
            async with async_savepoint(connection):
                with running_job(self._context()):
                    result = self._attempt.job.function(**arguments)
                    if inspect.iscoroutine(result):
                        await result
        except Exception as error:  # noqa: BLE001 - see run
            self._fail(error)

    def end(self) -> Plan[InlineAttempt]:
        """Write how it ended, unless it completed itself."""
        claimed = self._attempt.claimed
        finished = FinishedAttempt(
            *self._attempt.held,
            self._verdict.outcome,
            self._attempt.started,
            time.monotonic(),
            self._verdict.delay_seconds,
            self._verdict.error,
            self._verdict.traceback,
        )
        is_held = yield from finish_one(finished)
        outcome = self._verdict.outcome
        if not is_held and self._attempt.is_completing:
            outcome = AttemptOutcome.COMPLETED
        return InlineAttempt(claimed.job_id, claimed.kind, claimed.attempt, outcome, self._error)

    @property
    def unexpected(self) -> Exception | None:
        """Return what the function raised that is no signal of its own."""
        return None if isinstance(self._error, JobSignal) else self._error

    def _decode(self) -> Mapping[str, object] | None:
        try:
            return self._attempt.job.decode(json.loads(self._attempt.claimed.args))
        except ArgumentsError as error:
            self._error = error
            self._verdict = verdict_on_arguments(error)
            return None

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._verdict = verdict_on(self._attempt, error, skip_frames=1)

    def _context(self) -> JobContext:
        claimed = self._attempt.claimed
        return JobContext(
            claimed.job_id,
            claimed.kind,
            self._attempt.queue,
            claimed.attempt,
            claimed.max_attempts,
            claimed.tick_id,
            claimed.created_at,
            self._attempt,
        )


def _run_coroutine(coroutine: Coroutine[object, object, object], *, kind: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
        return
    coroutine.close()
    raise TypeError(f"{kind} is async, and an event loop runs here already; pass an async connection and await the result")

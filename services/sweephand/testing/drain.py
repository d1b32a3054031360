"""Run jobs one after the other in the caller's transaction, and let time pass between them."""

from collections.abc import Awaitable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, ParamSpec, overload

from sweephand.app import App
from sweephand.job import Job
from sweephand.postgres import inline
from sweephand.postgres.callers_transaction import Plan, run
from sweephand.postgres.enqueue import enqueue
from sweephand.testing.attempt import RunningAttempt
from sweephand.testing.connections import is_async
from sweephand.testing.report import DrainReport, InlineAttempt

if TYPE_CHECKING:
    from sweephand.postgres.callers_transaction import AnyAsync, AnySync

P = ParamSpec("P")
OnFailure = Literal["raise", "retry"]

# More than any test means to run: a job that is due again at once, for ever, ends here.
_MOST_ATTEMPTS = 1_000
_NO_TIME = timedelta(0)


@overload
def perform(connection: "AnySync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs) -> InlineAttempt: ...
@overload
def perform(connection: "AnyAsync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[InlineAttempt]: ...
def perform(
    connection: "AnySync | AnyAsync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs
) -> InlineAttempt | Awaitable[InlineAttempt]:
    """Enqueue the job with these arguments and run one attempt of it at once; return how it ended.

    The arguments go through their stored form, and the function sees its `current_job()`. If an equal job waits already,
    that one runs.

    Raises:
        Exception: what the function raised, unless it is a signal such as Snooze. The job is retryable then.
        AssertionError: the job is a duplicate of one that does not wait.
    """
    if is_async(connection):
        return _perform_async(connection, job, job.bind(*args, **kwargs))
    return _perform(connection, job, job.bind(*args, **kwargs))  # type: ignore[arg-type]  # the other ones are sync


@overload
def drain(
    connection: "AnySync", app: App, *, queue: str | None = None, until: timedelta = _NO_TIME, on_failure: OnFailure = "raise"
) -> DrainReport: ...
@overload
def drain(
    connection: "AnyAsync", app: App, *, queue: str | None = None, until: timedelta = _NO_TIME, on_failure: OnFailure = "raise"
) -> Awaitable[DrainReport]: ...
def drain(
    connection: "AnySync | AnyAsync",
    app: App,
    *,
    queue: str | None = None,
    until: timedelta = _NO_TIME,
    on_failure: OnFailure = "raise",
) -> DrainReport | Awaitable[DrainReport]:
    """Run the application's jobs that are due, and those that they enqueue, until none is due; return what ran.

    Args:
        connection: sees the jobs, and has its transaction open. Each attempt runs in a savepoint of it.
        app: has the jobs' functions.
        queue: None means all queues.
        until: how much time passes meanwhile: jobs that come due in it, such as retries, run at their time. See `let_pass`.
        on_failure: "raise" passes on what a function raises, once it is written; "retry" goes on as a worker would.

    Raises:
        Exception: what a function raised, unless it is a signal such as Snooze or `on_failure` is "retry".
        AssertionError: jobs were still due after 1,000 attempts.
    """
    course = _Course(app, queue=queue, remaining=until, on_failure=on_failure)
    if is_async(connection):
        return _drain_async(connection, course)
    return _drain(connection, course)  # type: ignore[arg-type]  # the other ones are sync


@overload
def let_pass(connection: "AnySync", by: timedelta) -> None: ...
@overload
def let_pass(connection: "AnyAsync", by: timedelta) -> Awaitable[None]: ...
def let_pass(connection: "AnySync | AnyAsync", by: timedelta) -> Awaitable[None] | None:
    """Be later by so much, for jobs: their times of creation, start and end move into the past. Your own rows do not."""
    return run(connection, inline.let_pass(by))


class _Course:
    """Know what a drain still has to do, between the steps that its connection executes."""

    def __init__(self, app: App, *, queue: str | None, remaining: timedelta, on_failure: OnFailure) -> None:
        self.remaining = remaining
        self.attempts: list[InlineAttempt] = []
        self._app = app
        self._queue = queue
        self._on_failure = on_failure

    def claim(self) -> Plan[RunningAttempt | None]:
        """Claim the next job that is due, letting time pass for it if nothing else is; None if there is none."""
        if len(self.attempts) >= _MOST_ATTEMPTS:
            raise AssertionError(f"jobs are still due after {_MOST_ATTEMPTS} attempts; the last one: {self.attempts[-1]}")
        kinds = self._app.kinds()
        claimed = yield from inline.claim_next(kinds, queue=self._queue)
        if claimed is None:
            wait = yield from inline.next_wait(kinds, queue=self._queue)
            is_over = wait is None or wait > self.remaining
            passing = self.remaining if wait is None or is_over else wait
            if passing > _NO_TIME:
                yield from inline.let_pass(passing)
                self.remaining -= passing
            if is_over:
                return None
            claimed = yield from inline.claim_next(kinds, queue=self._queue)
        job = None if claimed is None else self._app.job_for(claimed.job.kind)
        return None if claimed is None or job is None else RunningAttempt(claimed, job)

    def end(self, attempt: RunningAttempt) -> Plan[None]:
        """Write the attempt's end, and raise what it raised if that was asked for."""
        self.attempts.append((yield from attempt.end()))
        if attempt.unexpected is not None and self._on_failure == "raise":
            raise attempt.unexpected


def _drain(connection: "AnySync", course: _Course) -> DrainReport:
    while (attempt := run(connection, course.claim())) is not None:
        attempt.run(connection)
        run(connection, course.end(attempt))
    return DrainReport(tuple(course.attempts))


async def _drain_async(connection: "AnyAsync", course: _Course) -> DrainReport:
    while (attempt := await run(connection, course.claim())) is not None:
        await attempt.run_async(connection)
        await run(connection, course.end(attempt))
    return DrainReport(tuple(course.attempts))


def _perform(connection: "AnySync", job: Job[...], arguments: Mapping[str, object]) -> InlineAttempt:
    outcome = enqueue(connection, job, **arguments)
    attempt = run(connection, _claim(job, outcome.job_id))
    attempt.run(connection)
    return run(connection, _end(attempt))


async def _perform_async(connection: "AnyAsync", job: Job[...], arguments: Mapping[str, object]) -> InlineAttempt:
    outcome = await enqueue(connection, job, **arguments)
    attempt = await run(connection, _claim(job, outcome.job_id))
    await attempt.run_async(connection)
    return await run(connection, _end(attempt))


def _claim(job: Job[...], job_id: int) -> Plan[RunningAttempt]:
    claimed = yield from inline.claim_next([job.kind, *job.aliases], job_id=job_id)
    if claimed is None:
        raise AssertionError(f"{job.kind}: an equal job, {job_id}, is running or cools down, so nothing was enqueued")
    return RunningAttempt(claimed, job)


def _end(attempt: RunningAttempt) -> Plan[InlineAttempt]:
    ended = yield from attempt.end()
    if attempt.unexpected is not None:
        raise attempt.unexpected
    return ended

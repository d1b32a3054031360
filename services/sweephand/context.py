"""Let a job's code see which job it is, and a process see what its code enqueues."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, overload

if TYPE_CHECKING:
    from sweephand.postgres.callers_transaction import AnyAsync, AnySync


class Claim(Protocol):
    """Be what its worker knows of a running attempt; `started` is a reading of the monotonic clock."""

    claim_token: str
    started: float
    is_completing: bool


@dataclass(frozen=True, slots=True)
class JobContext:
    """Say which attempt of which job is running; `attempt` starts at 1, `tick_id` is None unless a sweep enqueued it."""

    job_id: int
    kind: str
    queue: str
    attempt: int
    max_attempts: int
    tick_id: int | None
    created_at: datetime
    claim: Claim = field(repr=False, compare=False)

    @overload
    def complete(self, connection: "AnySync") -> None: ...
    @overload
    def complete(self, connection: "AnyAsync") -> Awaitable[None]: ...
    def complete(self, connection: "AnySync | AnyAsync") -> Awaitable[None] | None:
        """Complete the job in the transaction that is open on `connection`: the job's writes and its end commit together.

        Once that is committed, the job is completed, whatever the function does afterwards; if it is rolled back, the
        attempt ends as the function ends. `connection` is what `sweephand.enqueue` takes; for the async ones the result is
        awaited. Call it late in the transaction: the job's row stays locked until its end.

        Raises:
            StaleAttemptError: this attempt no longer holds the job. Let it roll back the transaction.
            NoTransactionError: no transaction is open on the connection.
        """
        from sweephand.postgres.callers_transaction import run
        from sweephand.postgres.completion import completing

        return run(connection, completing(self))


EnqueueObserver = Callable[[str, bool], None]
"""Called with a job's queue and whether it was a duplicate, before the caller's transaction ends."""

_running: ContextVar[JobContext] = ContextVar("sweephand_running_job")
_observer: ContextVar[EnqueueObserver | None] = ContextVar("sweephand_enqueue_observer", default=None)


def current_job() -> JobContext:
    """Return the context of the job that this code runs in.

    Raises:
        LookupError: the code does not run inside a job.
    """
    return _running.get()


def set_running_job(context: JobContext) -> None:
    """Make `context` the current job for the rest of this contextvars context, which ends with the attempt."""
    _running.set(context)


@contextmanager
def running_job(context: JobContext) -> Iterator[None]:
    """Make `context` the current job for the block."""
    token = _running.set(context)
    try:
        yield
    finally:
        _running.reset(token)


@contextmanager
def observing_enqueues(observer: EnqueueObserver) -> Iterator[None]:
    """Call `observer` for every job that code in the block enqueues, in threads that inherit its context too."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


class Enqueued(Protocol):
    """Be what became of one item that was enqueued."""

    @property
    def is_duplicate(self) -> bool:
        """Tell whether an equal job was there already."""
        ...


def tell_enqueued(queue: str, outcomes: Iterable[Enqueued]) -> None:
    """Tell the observer, if there is one, of the jobs that were enqueued."""
    observer = _observer.get()
    if observer is not None:
        for outcome in outcomes:
            observer(queue, outcome.is_duplicate)

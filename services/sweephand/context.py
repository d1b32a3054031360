"""Let a job's code see which job it is, and a process see what its code enqueues."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime


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


@contextmanager
def running_job(context: JobContext) -> Iterator[None]:
    """Make `context` the current job for the block; the worker wraps each attempt in it."""
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


def tell_enqueued(queue: str, *, is_duplicate: bool) -> None:
    """Tell the observer, if there is one, of a job that was enqueued."""
    observer = _observer.get()
    if observer is not None:
        observer(queue, is_duplicate)

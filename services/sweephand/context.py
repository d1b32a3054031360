"""Let a job's code see which job it is."""

from collections.abc import Iterator
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


_running: ContextVar[JobContext] = ContextVar("sweephand_running_job")


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

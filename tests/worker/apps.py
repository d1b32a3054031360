"""The application that the worker's tests run, in processes of their own."""

import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

from sweephand import App, DiscardJob, current_job
from tests.support import plain_jobs

_LONG_SECONDS = 300.0

app = App("worker_tests")

app.job(unique=None)(plain_jobs.noop)
app.job(unique=None)(plain_jobs.fail)
app.job(unique=None)(plain_jobs.end_by)
app.job(unique=None)(plain_jobs.hold)
app.job(unique=None, timeout=timedelta(seconds=1), kind="overrun")(plain_jobs.hold)


def _at_once(_attempt: int) -> float:
    return 0.0


def _nonsense(_attempt: int) -> float:
    return float("nan")


@app.job(unique=None)
def hang(seconds: float) -> None:
    """Block in C, where no exception can arrive."""
    # One wait in the kernel: subprocess's own waits in Python wake up now and then.
    child = subprocess.Popen(["sleep", str(seconds)])
    os.waitpid(child.pid, 0)


@app.job(unique=None, max_attempts=3, backoff=_at_once)
def fail_thrice() -> None:
    """Fail every time, without a wait between."""
    raise ValueError("never")


@app.job(unique=None, backoff=_at_once)
def fail_always() -> None:
    """Fail every time, with the usual number of attempts."""
    raise ValueError("never")


@app.job(unique=None, backoff=_nonsense)
def fail_with_a_broken_backoff() -> None:
    """Fail, and give no sensible wait either."""
    raise ValueError("never")


@app.job(unique=None)
def fail_unstorably() -> None:
    """Raise what PostgreSQL cannot store."""
    raise ValueError("a NUL \0, a surrogate \udc80 and ü")


class _BrokenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@app.job(unique=None)
def fail_without_text() -> None:
    """Raise what cannot even be printed."""
    raise _BrokenError


@app.job(unique=None)
def exit_thread() -> None:
    """Raise what would end a thread."""
    raise SystemExit(3)


@app.job(unique=None, max_attempts=2)
def kill_worker() -> None:
    """Kill the process that runs this."""
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(unique=None)
def tell_context() -> None:
    """Say which job this is."""
    job = current_job()
    raise DiscardJob(f"{job.kind} {job.queue} {job.attempt}/{job.max_attempts} {job.tick_id}")


@app.job(unique=None)
async def hold_async(gate: str) -> None:
    """Run on the event loop until the file is there."""
    from tests.support.waiting import until_async

    async def is_open() -> bool:
        return Path(gate).exists()

    await until_async(is_open, deadline_seconds=_LONG_SECONDS, message="the gate opens")


@app.job(unique=None)
async def tell_context_async() -> None:
    """Say which job this is, from the event loop."""
    raise DiscardJob(f"{current_job().kind} {current_job().attempt}")

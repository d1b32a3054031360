"""Look at the jobs that wait, as a test asserts on them."""

import json
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, overload

from sweephand.job import Job
from sweephand.postgres.callers_transaction import Plan, run
from sweephand.postgres.inline import WaitingJob, waiting_jobs

if TYPE_CHECKING:
    from sweephand.postgres.callers_transaction import AnyAsync, AnySync


@overload
def enqueued(connection: "AnySync", job: Job[...]) -> list[dict[str, object]]: ...
@overload
def enqueued(connection: "AnyAsync", job: Job[...]) -> Awaitable[list[dict[str, object]]]: ...
def enqueued(connection: "AnySync | AnyAsync", job: Job[...]) -> list[dict[str, object]] | Awaitable[list[dict[str, object]]]:
    """Return the arguments of each waiting job of this kind, as the function takes them, in the order of enqueueing."""
    return run(connection, _arguments(job))


@overload
def assert_enqueued(connection: "AnySync", job: Job[...], /, **arguments: object) -> int: ...
@overload
def assert_enqueued(connection: "AnyAsync", job: Job[...], /, **arguments: object) -> Awaitable[int]: ...
def assert_enqueued(connection: "AnySync | AnyAsync", job: Job[...], /, **arguments: object) -> int | Awaitable[int]:
    """Assert that a job of this kind waits that has these arguments, whatever its others are; return its id.

    With `job.at(…)` or `job.after(…)` it must have been scheduled for that moment or with that delay.

    Raises:
        AssertionError: none does; the message lists those that wait.
        ArgumentsError: the job has no such parameter, or the value does not fit it.
    """
    return run(connection, _assert_enqueued(job, arguments))


@overload
def assert_not_enqueued(connection: "AnySync", job: Job[...], /, **arguments: object) -> None: ...
@overload
def assert_not_enqueued(connection: "AnyAsync", job: Job[...], /, **arguments: object) -> Awaitable[None]: ...
def assert_not_enqueued(connection: "AnySync | AnyAsync", job: Job[...], /, **arguments: object) -> Awaitable[None] | None:
    """Assert that no job of this kind waits that has these arguments; without any, that none of this kind waits.

    Raises:
        AssertionError: one does.
        ArgumentsError: the job has no such parameter, or the value does not fit it.
    """
    return run(connection, _assert_not_enqueued(job, arguments))


def _arguments(job: Job[...]) -> Plan[list[dict[str, object]]]:
    waiting = yield from waiting_jobs([job.kind, *job.aliases])
    return [job.decode(json.loads(found.args)) for found in waiting]


def _assert_enqueued(job: Job[...], arguments: Mapping[str, object]) -> Plan[int]:
    wanted = job.parameters.encode_some(arguments)
    waiting = yield from waiting_jobs([job.kind, *job.aliases])
    for found in waiting:
        if _fits(found, job, wanted):
            return found.job_id
    present = "\n".join(f"  job {found.job_id}: {found.args}, {_start(found)}" for found in waiting) or "  none"
    raise AssertionError(f"no {job.kind} waits with {json.dumps(wanted)}{_wanted_start(job)}; there are:\n{present}")


def _assert_not_enqueued(job: Job[...], arguments: Mapping[str, object]) -> Plan[None]:
    wanted = job.parameters.encode_some(arguments)
    waiting = yield from waiting_jobs([job.kind, *job.aliases])
    for found in waiting:
        if _fits(found, job, wanted):
            raise AssertionError(f"{job.kind} job {found.job_id} waits with {found.args}, {_start(found)}")


def _fits(found: WaitingJob, job: Job[...], wanted: Mapping[str, object]) -> bool:
    stored: object = json.loads(found.args)
    if job.delay is not None and found.delay != job.delay:
        return False
    if job.scheduled_at is not None and found.scheduled_at != job.scheduled_at:
        return False
    return isinstance(stored, dict) and all(name in stored and stored[name] == value for name, value in wanted.items())


def _start(found: WaitingJob) -> str:
    return f"to start at {found.scheduled_at.isoformat()}, {found.delay} after it was enqueued"


def _wanted_start(job: Job[...]) -> str:
    if job.delay is not None:
        return f" and a delay of {job.delay}"
    return "" if job.scheduled_at is None else f" to start at {job.scheduled_at.isoformat()}"

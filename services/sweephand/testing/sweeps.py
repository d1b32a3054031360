"""Run a sweep's SELECT, or a whole tick of it, in the caller's transaction."""

import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from sweephand.model.errors import ArgumentsError
from sweephand.postgres.callers_transaction import Plan, run
from sweephand.postgres.enqueue import EnqueueOutcome, enqueueing
from sweephand.postgres.inline import considered_rows, scanned_rows
from sweephand.sweep import Sweep

if TYPE_CHECKING:
    from sweephand.postgres.callers_transaction import AnyAsync, AnySync


@dataclass(frozen=True, slots=True)
class InlineTick:
    """Say what a tick enqueued, in its order, and how many rows it passed over; `refusals` tell of rows that do not fit."""

    job_ids: tuple[int, ...]
    skipped_duplicates: int
    refusals: tuple[str, ...]

    @property
    def enqueued(self) -> int:
        """Return how many jobs it enqueued."""
        return len(self.job_ids)


@overload
def sweep_rows(connection: "AnySync", sweep: Sweep) -> list[dict[str, object]]: ...
@overload
def sweep_rows(connection: "AnyAsync", sweep: Sweep) -> Awaitable[list[dict[str, object]]]: ...
def sweep_rows(connection: "AnySync | AnyAsync", sweep: Sweep) -> list[dict[str, object]] | Awaitable[list[dict[str, object]]]:
    """Return the rows that the sweep finds, as its job's arguments, in its order, up to its scan bound. Needs psycopg.

    Raises:
        ArgumentsError: a row does not fit the job's parameters; a tick would refuse it and go on.
    """
    return run(connection, _rows(sweep))


@overload
def run_sweep(connection: "AnySync", sweep: Sweep) -> InlineTick: ...
@overload
def run_sweep(connection: "AnyAsync", sweep: Sweep) -> Awaitable[InlineTick]: ...
def run_sweep(connection: "AnySync | AnyAsync", sweep: Sweep) -> InlineTick | Awaitable[InlineTick]:
    """Do what a tick of the sweep does now: enqueue a job for each row that has none, up to its limit. Needs psycopg.

    The ledger gets no row, and the jobs name no tick.
    """
    return run(connection, _tick(sweep))


def _rows(sweep: Sweep) -> Plan[list[dict[str, object]]]:
    found = yield from scanned_rows(sweep)
    _raise_refusal(sweep, found)
    return [sweep.job.decode(json.loads(args)) for args, _ in found]


def _tick(sweep: Sweep) -> Plan[InlineTick]:
    found = yield from considered_rows(sweep)
    fitting = [args for args, refusal in found if refusal is None]
    outcomes: Sequence[EnqueueOutcome] = yield from enqueueing(sweep.job, fitting)
    new = tuple(outcome.job_id for outcome in outcomes if not outcome.is_duplicate)
    refusals = tuple(f"{refusal} in {args}" for args, refusal in found if refusal is not None)
    return InlineTick(job_ids=new, skipped_duplicates=len(fitting) - len(new), refusals=refusals)


def _raise_refusal(sweep: Sweep, found: Sequence[tuple[str, str | None]]) -> None:
    for args, refusal in found:
        if refusal is not None:
            raise ArgumentsError(f"sweep {sweep.name}: {refusal} in {args}")

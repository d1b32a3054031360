"""Test jobs and sweeps inside of one transaction, which the test rolls back: no worker, no dispatcher, no waiting.

- `perform`: run one job here and now, through the queue's tables; `drain`: run whatever is due, and what comes due.
- `let_pass`: be later, for scheduled jobs, retries and cool-downs.
- `enqueued`, `assert_enqueued`, `assert_not_enqueued`: see what was enqueued.
- `sweep_rows`, `run_sweep`: see what a sweep finds, and enqueue it.

Each takes a connection of any kind that `sweephand.enqueue` takes, with its transaction open; for the async ones the result is
awaited. docs/guides/testing.md shows how to put a whole test into one transaction.
"""

from sweephand.testing.drain import drain, let_pass, perform
from sweephand.testing.enqueued import assert_enqueued, assert_not_enqueued, enqueued
from sweephand.testing.report import DrainReport, InlineAttempt
from sweephand.testing.sweeps import InlineTick, run_sweep, sweep_rows

__all__ = [
    "DrainReport",
    "InlineAttempt",
    "InlineTick",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "enqueued",
    "let_pass",
    "perform",
    "run_sweep",
    "sweep_rows",
]

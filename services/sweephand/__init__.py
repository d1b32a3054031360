"""Run periodic work without cron: sweeps find stuck rows, and one unique job for each of them mends it.

The map, from the outside in:

- `app`, `job`, `sweep`: what an application writes: `App`, `@app.job`, `@app.sweep`.
- `postgres.enqueue`: `enqueue`, a job in the caller's own transaction.
- `model`: the rules without I/O: states, backoff, arguments, schedules, the plan of a tick.
- `postgres`: all of the SQL. `dispatch.py` is the one statement that scans and enqueues.
- `dispatcher`: a tick's way: `lease.py` (who leads) → `loop.py` (when) → `model/ticks.py` (which) → `postgres/dispatch.py`.
- `worker`: claims, attempts, finishes, on dramatiq's threads.
- `web`: the API process, problem+json, health and metrics endpoints.
- `testing`: jobs and sweeps inside of a test's transaction.
- `cli`, `settings`, `telemetry`, `dev`, `demo`: commands, configuration, logs and metrics, local runs.
"""

from sweephand.app import App
from sweephand.context import JobContext, current_job
from sweephand.job import Job
from sweephand.model.errors import (
    AppError,
    ArgumentsError,
    ConflictError,
    DatabaseError,
    FencedError,
    NotFoundError,
    NotMigratedError,
    NoTransactionError,
    SettingsError,
    StaleAttemptError,
    SweephandError,
)
from sweephand.model.outcomes import CancelJob, DiscardJob, RetryJob, Snooze
from sweephand.postgres.enqueue import EnqueueOutcome, enqueue, enqueue_many
from sweephand.sweep import Sweep

__all__ = [
    "App",
    "AppError",
    "ArgumentsError",
    "CancelJob",
    "ConflictError",
    "DatabaseError",
    "DiscardJob",
    "EnqueueOutcome",
    "FencedError",
    "Job",
    "JobContext",
    "NoTransactionError",
    "NotFoundError",
    "NotMigratedError",
    "RetryJob",
    "SettingsError",
    "Snooze",
    "StaleAttemptError",
    "Sweep",
    "SweephandError",
    "current_job",
    "enqueue",
    "enqueue_many",
]

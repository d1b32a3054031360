"""Enqueue in a transaction of its own, for callers that have none: `job.send(…)`."""

import os

from sweephand.job import Job
from sweephand.model.errors import SettingsError
from sweephand.postgres.connect import connect
from sweephand.postgres.enqueue import EnqueueOutcome, enqueue_encoded


def send(job: Job[...], args: str) -> EnqueueOutcome:
    """Open a connection to `DATABASE_URL`, enqueue, commit and close.

    Raises:
        SettingsError: DATABASE_URL is not set.
        DatabaseError: PostgreSQL cannot be reached.
    """
    database_url = os.environ.get("DATABASE_URL")
    if not database_url:
        raise SettingsError(f"{job.kind}.send() needs DATABASE_URL; set it, or use sweephand.enqueue with a connection of yours")
    with connect(database_url, application_name="sweephand send") as connection, connection.transaction():
        return enqueue_encoded(connection, job, args)

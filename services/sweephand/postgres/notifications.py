"""Listen for jobs that become available: one channel for each queue."""

from collections.abc import Iterator, Sequence

import psycopg
from psycopg import sql

_PREFIX = "sweephand."


def listen(conn: psycopg.Connection, queues: Sequence[str]) -> None:
    """Begin to listen for the queues on this autocommit connection, which must be the listener's own."""
    for queue in queues:
        conn.execute(sql.SQL("LISTEN {}").format(sql.Identifier(_PREFIX + queue)))


def notified_queues(conn: psycopg.Connection, *, timeout_seconds: float) -> Iterator[str]:
    """Yield the queues that are notified, as they are; end after the timeout, whether or not anything came."""
    for notify in conn.notifies(timeout=timeout_seconds):
        yield notify.channel.removeprefix(_PREFIX)


def check_alive(conn: psycopg.Connection) -> None:
    """Make the server answer: a connection that only listens would never notice that its peer has vanished."""
    conn.execute("SELECT 1")

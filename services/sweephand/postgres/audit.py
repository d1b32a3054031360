"""Write down who did what: a row for each thing that an operator changed, in the transaction that changed it."""

from dataclasses import dataclass
from datetime import datetime

import psycopg

from sweephand.postgres.moments import utc_row

_RECORD = "INSERT INTO sweephand.audit (actor, action, target, note) VALUES (%s, %s, %s, %s) RETURNING id"
_REWRITE = "UPDATE sweephand.audit SET note = %s WHERE id = %s"
_READ = """
SELECT id, at, actor, action, target, note FROM sweephand.audit
WHERE target = ANY (%(targets)s) ORDER BY id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Be one thing that somebody did: `action` is like `sweep.pause`, `target` like `storefront/stuck_publications`."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    note: str | None


def record(connection: psycopg.Connection, *, actor: str, action: str, target: str, note: str | None = None) -> int:
    """Write an entry in the transaction that is open, and return its id."""
    row = connection.execute(_RECORD, (actor, action, target, note)).fetchone()
    if row is None:
        raise AssertionError("INSERT … RETURNING gave no row")
    return int(row[0])


def rewrite_note(connection: psycopg.Connection, entry_id: int, *, note: str) -> None:
    """Replace the note of an entry: a change in several transactions tells in it how far it has come."""
    connection.execute(_REWRITE, (note, entry_id))


def read_audit(connection: psycopg.Connection, *targets: str, limit: int = 5) -> list[AuditEntry]:
    """Return the latest entries about any of the targets, latest first."""
    with connection.cursor(row_factory=utc_row(AuditEntry)) as cursor:
        return cursor.execute(_READ, {"targets": list(targets), "limit": limit}).fetchall()

"""Keep the term: the number that fences an old leader's writes off from those of a newer one.

The Lease says who takes over; this row says who may write. Each transaction of a leader first locks the row of its own term
for sharing. `gain` raises the term, and so waits for every transaction of the old term that is under way; each later one
finds no row and writes nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg

from sweephand.model.errors import FencedError
from sweephand.postgres.moments import utc

# A leader that is frozen inside a transaction would hold the row for ever; the server ends its session instead.
_IDLE_IN_TRANSACTION = timedelta(seconds=10)

_GAIN = """
INSERT INTO sweephand.leader AS leader (name, term, holder, since) VALUES (%(name)s, 1, %(holder)s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET term = leader.term + 1, holder = EXCLUDED.holder, since = clock_timestamp()
RETURNING term, since
"""

_FENCE = """
SELECT set_config('statement_timeout', %(statement_timeout)s, true), set_config('lock_timeout', %(statement_timeout)s, true),
       set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, true),
       set_config('extra_float_digits', '1', true) -- the shortest exact digits, so that a float has one unique key
FROM sweephand.leader WHERE name = %(name)s AND term = %(term)s FOR SHARE
"""

_CURRENT = "SELECT term, holder, since FROM sweephand.leader WHERE name = %(name)s"


@dataclass(frozen=True, slots=True)
class Term:
    """Be one leadership: `name` is the application's, `number` grows by one with each leader, `since` is the database's."""

    name: str
    number: int
    holder: str
    since: datetime


async def gain(connection: psycopg.AsyncConnection, *, name: str, holder: str) -> Term:
    """Begin a new term; waits for the dispatches of the old one that are under way."""
    row = await (await connection.execute(_GAIN, {"name": name, "holder": holder})).fetchone()
    if row is None:
        raise FencedError(f"the term of {name} could not be raised; the row was not returned")
    return Term(name=name, number=int(row[0]), holder=holder, since=utc(row[1]))


async def fence(connection: psycopg.AsyncConnection, term: Term, *, statement_timeout: timedelta) -> None:
    """Hold the term for the transaction that is open on `connection`, and set its time limits: call it first.

    Raises:
        FencedError: a later term has begun; nothing may be written.
    """
    found = await connection.execute(
        _FENCE,
        {
            "name": term.name,
            "term": term.number,
            "statement_timeout": _milliseconds(statement_timeout),
            "idle_timeout": _milliseconds(_IDLE_IN_TRANSACTION),
        },
    )
    if await found.fetchone() is None:
        raise FencedError(f"term {term.number} of {term.name} is over: another dispatcher leads")


async def current(connection: psycopg.AsyncConnection, *, name: str) -> Term | None:
    """Return the present term; None if nobody has led yet."""
    row = await (await connection.execute(_CURRENT, {"name": name})).fetchone()
    return None if row is None else Term(name=name, number=int(row[0]), holder=str(row[1]), since=utc(row[2]))


def _milliseconds(duration: timedelta) -> str:
    return str(max(1, int(duration.total_seconds() * 1000)))

"""Put sweeps and ticks into a database, as dispatchers would have."""

import psycopg


def insert_leader(conn: psycopg.Connection, app: str = "shop", *, term: int = 1, holder: str = "dispatcher-0") -> None:
    """Let somebody lead an application."""
    conn.execute(
        "INSERT INTO sweephand.leader (name, term, holder, since) VALUES (%s, %s, %s, now()) "
        "ON CONFLICT (name) DO UPDATE SET term = excluded.term, holder = excluded.holder",
        (app, term, holder),
    )


def insert_sweep(
    conn: psycopg.Connection,
    name: str = "untidy_shelves",
    *,
    app: str = "shop",
    kind: str = "tidy_shelf",
    schedule: str = "every 60 s",
    limit: int = 10,
    next_in_seconds: float = 30,
    term: int = 1,
) -> None:
    """Register a sweep."""
    conn.execute(
        """
        INSERT INTO sweephand.sweep (app, name, kind, queue, schedule, batch_limit, scan_bound, run_on_start, catch_up, overlap,
            anchor_at, next_tick_at, registered_term)
        VALUES (%s, %s, %s, 'default', %s, %s, %s, true, 'latest', 'skip', now() - interval '1 day',
            now() + make_interval(secs => %s), %s)
        """,
        (app, name, kind, schedule, limit, 10 * limit, next_in_seconds, term),
    )


def insert_tick(
    conn: psycopg.Connection,
    sweep: str = "untidy_shelves",
    *,
    app: str = "shop",
    ago_seconds: float = 30,
    outcome: str = "ok",
    reason: str = "tick",
    cause: str | None = None,
    covers: int = 1,
    enqueued: int = 0,
    skipped_duplicates: int = 0,
    error: str | None = None,
) -> int:
    """Add a row to the ledger, planned so long ago, and return its id."""
    row = conn.execute(
        """
        INSERT INTO sweephand.tick (app, sweep, planned_at, reason, outcome, cause, covers, started_at, ended_at, enqueued,
            skipped_duplicates, error, term, dispatcher)
        SELECT %(app)s, %(sweep)s, planned_at, %(reason)s, %(outcome)s, %(cause)s, %(covers)s,
            CASE WHEN ran THEN planned_at + interval '40 ms' END, CASE WHEN ran THEN planned_at + interval '1040 ms' END,
            %(enqueued)s, %(skipped_duplicates)s, %(error)s, 1, 'dispatcher-0'
        FROM (SELECT now() - make_interval(secs => %(ago)s) AS planned_at,
            %(outcome)s IN ('ok', 'empty', 'error', 'fenced') AS ran) AS given
        RETURNING id
        """,
        {
            "app": app,
            "sweep": sweep,
            "ago": ago_seconds,
            "reason": reason,
            "outcome": outcome,
            "cause": cause,
            "covers": covers,
            "enqueued": enqueued,
            "skipped_duplicates": skipped_duplicates,
            "error": error,
        },
    ).fetchone()
    assert row is not None
    return int(row[0])

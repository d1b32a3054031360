"""Say what a sweep's next tick would do, without doing it: a dry run in a transaction that cannot write."""

from dataclasses import dataclass

import psycopg

from sweephand.model.errors import ConflictError
from sweephand.postgres.backlog import ROWS_BOUND
from sweephand.postgres.index_advice import index_advice
from sweephand.postgres.operator_session import reading
from sweephand.postgres.plans import Plan, explain
from sweephand.postgres.scan import considered_sql, considered_values, literal_sql, scan_sql
from sweephand.postgres.unique_keys import held_keys
from sweephand.sweep import Sweep

_SHOWN_ROWS = 5

# Rows that are new beside an equal one of the same batch are counted as duplicates, as the unique index has it.
_COUNTS = """
WITH {considered}, first_of_key AS (
    SELECT considered.*, is_new AND (unique_key IS NULL
        OR position = min(position) FILTER (WHERE is_new) OVER (PARTITION BY unique_key)) AS is_enqueued
    FROM considered
), shown AS (
    SELECT position, args, refusal, is_enqueued, (
        SELECT min(job_id) FROM {held_keys} AS held WHERE held.unique_key = first_of_key.unique_key) AS duplicate_of
    FROM first_of_key ORDER BY position LIMIT %(shown)s
)
SELECT count(*)::integer AS considered,
    count(*) FILTER (WHERE refusal IS NOT NULL)::integer AS refused,
    count(*) FILTER (WHERE is_enqueued)::integer AS enqueued,
    (SELECT count(*) FROM keyed) = %(scan_bound)s AND coalesce(max(new_so_far), 0) < %(limit)s AS is_truncated,
    (array_agg(refusal || ' in ' || args ORDER BY position) FILTER (WHERE refusal IS NOT NULL))[1:%(shown)s] AS refusals,
    ARRAY (SELECT args::text FROM shown ORDER BY position) AS shown_args,
    ARRAY (SELECT CASE WHEN refusal IS NOT NULL THEN 'refused: ' || refusal
                       WHEN is_enqueued THEN 'would be enqueued'
                       WHEN duplicate_of IS NULL THEN 'duplicate of another row'
                       ELSE 'duplicate of job ' || duplicate_of END FROM shown ORDER BY position) AS shown_fates
FROM first_of_key
"""


@dataclass(frozen=True, slots=True)
class PreviewedRow:
    """Be one row that a sweep finds: the job's arguments as JSON text, and what would become of it."""

    args: str
    fate: str


@dataclass(frozen=True, slots=True)
class Preview:
    """Say what a tick would do now.

    `matching` counts the rows that the SELECT finds, up to `matching_bound`; the tick looks at `considered` of them, from
    the first on, until `limit` new jobs are found or `scan_bound` rows are looked at (`is_truncated`: it came to that).
    `refusals` are the first of the refused rows. `advice` says how to serve a plan that reads a large table as a whole.
    """

    matching: int
    matching_bound: int
    considered: int
    enqueued: int
    skipped_duplicates: int
    refused: int
    is_truncated: bool
    limit: int
    scan_bound: int
    refusals: tuple[str, ...]
    first_rows: tuple[PreviewedRow, ...]
    plan: Plan
    advice: tuple[str, ...]


def preview(connection: psycopg.Connection, sweep: Sweep) -> Preview:
    """Return what the sweep's tick would do, as of one moment of the database.

    Raises:
        ConflictError: the tick would end as an error: the SELECT fails, or takes longer than its statement_timeout.
        AppError: a value in the SELECT has no literal form.
    """
    scan, found = scan_sql(sweep), literal_sql(sweep, sweep.select())
    values = considered_values(sweep) | {"shown": _SHOWN_ROWS}
    advice: tuple[str, ...] = ()
    try:
        with reading(connection, timeout=sweep.statement_timeout):
            plan = explain(connection, f"SELECT args, refusal FROM ({scan}) AS rows LIMIT %(scan_bound)s", values)  # noqa: S608
        advice = tuple(
            index_advice(sweep.select(), schema=read.schema, table=read.table) for read in plan.reads if read.is_costly
        )
        with reading(connection, timeout=sweep.statement_timeout):
            keys = held_keys(has_cool_down=sweep.job.unique.cool_down is not None)
            statement = _COUNTS.replace("{held_keys}", keys).replace("{considered}", considered_sql(sweep))
            row = connection.execute(statement.encode(), values).fetchone()
            bounded = f"SELECT count(*) FROM (SELECT FROM ({found}) AS found LIMIT {ROWS_BOUND}) AS bounded"  # noqa: S608
            matching = connection.execute(bounded.encode(), {}).fetchone()
    except psycopg.errors.QueryCanceled as error:
        seconds = sweep.statement_timeout.total_seconds()
        raise ConflictError(
            f"sweep {sweep.name}: its SELECT takes longer than its statement_timeout of {seconds:g} s, so that its ticks end "
            f"as errors; {advice[0] if advice else 'give it an index, or a longer statement_timeout'}"
        ) from error
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.errors.ReadOnlySqlTransaction) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConflictError(f"sweep {sweep.name}: its SELECT fails, so that its ticks end as errors: {first}") from error
    if row is None or matching is None:
        raise AssertionError("an aggregate gave no row")
    considered, refused, enqueued, is_truncated, refusals, shown_args, shown_fates = row
    return Preview(
        matching=matching[0],
        matching_bound=ROWS_BOUND,
        considered=considered,
        enqueued=enqueued,
        skipped_duplicates=considered - refused - enqueued,
        refused=refused,
        is_truncated=is_truncated,
        limit=sweep.limit,
        scan_bound=sweep.scan_bound,
        refusals=tuple(refusals or ()),
        first_rows=tuple(PreviewedRow(args=args, fate=fate) for args, fate in zip(shown_args, shown_fates, strict=True)),
        plan=plan,
        advice=advice,
    )

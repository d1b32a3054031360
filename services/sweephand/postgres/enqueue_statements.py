"""Write the statements that enqueue: for one job or for many, with only the columns and conditions that the job needs.

Each parameter, CASE and NULL column that a job does not need would cost every enqueue of every job some microseconds, and
what depends on parameters makes PostgreSQL plan anew instead of keeping its plan.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType

from sweephand.job import Job
from sweephand.postgres.callers_transaction import Statement
from sweephand.postgres.unique_keys import cool_down_seconds, held_keys, unless_cooling
from sweephand.tracing import trace_context

_KIND = "CAST(:kind AS text)"
_COLUMNS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "kind": ("kind", _KIND),
        "queue": ("queue", "CAST(:queue AS text)"),
        "max_attempts": ("max_attempts", "CAST(:max_attempts AS integer)"),
        "timeout": ("timeout_seconds", "CAST(:timeout AS float8)"),
        "retain": ("retain_seconds", "CAST(:retain AS float8)"),
        "until_start": ("unique_until_start", "CAST(:until_start AS boolean)"),
        "cool_down": ("cool_down_seconds", "CAST(:cool_down AS float8)"),
        "trace_context": ("trace_context", "CAST(:trace_context AS jsonb)"),
    }
)
_WHEN: Mapping[str, str] = MappingProxyType(
    {
        "scheduled_at": "CAST(:scheduled_at AS timestamptz)",
        "delay": "now() + make_interval(secs => CAST(:delay AS float8))",
    }
)
_NO_DUPLICATE = """ON CONFLICT (unique_key)
        WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable')
        DO NOTHING"""
_NOTIFIED = "current_setting('sweephand.notify', true) IS DISTINCT FROM 'off'"
# It depends on no row, so PostgreSQL evaluates it once, for the first row that asks.
_NOTIFIED_ONCE = f"(SELECT pg_notify('sweephand.' || CAST(:queue AS text), '') WHERE {_NOTIFIED})"

_ONE = """
INSERT INTO sweephand.job ({columns}, args{key_column})
SELECT {values}, CAST(:args AS jsonb){key_value} {firsts}
RETURNING id, false AS is_duplicate,
    CASE WHEN state = 'available' AND {is_on} THEN pg_notify('sweephand.' || queue, '') END AS notified
"""
_ONE_UNIQUE = """
WITH inserted AS ({insert})
SELECT id, is_duplicate FROM inserted
UNION ALL
SELECT held.job_id, true FROM {held_keys} AS held WHERE held.unique_key = {key} AND NOT EXISTS (SELECT FROM inserted)
LIMIT 1
"""
# An item whose equal is unfinished, or has come meanwhile, meets ON CONFLICT and gets no answer: the next try asks for the
# holders of all keys. Who enqueues a batch anew has mostly the same items again, or none of them, so if a job holds the first
# item's key the holders are asked for at once.
#
# The look-ups by index hold for 10,000 items: of how long an array is nothing is known to the planner, and a nested loop of
# joins would take seconds.
_MANY = """
WITH {looking}inserted AS (
    INSERT INTO sweephand.job (id, {columns}, args{key_column})
    SELECT new_id, {values}, args{key_column}
    FROM (                          -- ids in the caller's order, so that workers take the jobs in it
        SELECT nextval('sweephand.job_id_seq') AS new_id, item AS args{key_of_item}
        FROM jsonb_array_elements(CAST(:items AS jsonb)) AS item {unless_looking}
    ) AS firsts {unless_cooling}
    {in_order}
    RETURNING id, CASE WHEN state = 'available' THEN {notified_once} END AS notified
)
SELECT id, CAST(NULL AS bigint) AS position FROM inserted
{holders}"""
_LOOKING = """looking AS MATERIALIZED (
    SELECT CAST(:is_looking AS boolean) OR EXISTS (SELECT FROM {held_keys} AS held WHERE held.unique_key = {first_key}) AS is_so
), """
_IN_ORDER = f"""ORDER BY unique_key, new_id  -- so that two writers cannot deadlock, and of equal items the first becomes the job
    {_NO_DUPLICATE}"""
_HOLDERS = """UNION ALL
SELECT holder.job_id, position
FROM jsonb_array_elements(CAST(:items AS jsonb)) WITH ORDINALITY AS listed (item, position)
CROSS JOIN LATERAL (SELECT job_id FROM {held_keys} AS held WHERE held.unique_key = {key} LIMIT 1) AS holder
WHERE (SELECT is_so FROM looking)
"""


def values_of(job: Job[...]) -> dict[str, object]:
    """Return the values of the job's columns that are not left at their defaults, by the statements' names for them."""
    values: dict[str, object] = {
        "kind": job.kind,
        "queue": job.queue,
        "max_attempts": job.max_attempts,
        "timeout": job.timeout.total_seconds(),
    }
    if job.retain is not None:
        values["retain"] = job.retain.total_seconds()
    if job.unique.args is not None:
        values["counted"] = list(job.unique.args)
    if job.unique.mode == "until_start":
        values["until_start"] = True
    if job.unique.cool_down is not None:
        values["cool_down"] = cool_down_seconds(job.unique)
    if job.scheduled_at is not None:
        values["scheduled_at"] = job.scheduled_at
    if job.delay is not None:
        values["delay"] = job.delay.total_seconds()
    trace = trace_context()
    if trace is not None:
        values["trace_context"] = trace
    return values


@functools.cache
def one(names: tuple[str, ...], *, is_unique: bool) -> Statement:
    """Return the statement that takes values of these names and `args`: a row with the job's id and whether it is a duplicate.

    No row: an equal job has come or gone in this very moment; try again.
    """
    key = _key("CAST(:args AS jsonb)", names)
    has_cool_down = "cool_down" in names
    insert = _ONE.format(
        **_columns(names),
        key_column=", unique_key" if is_unique else "",
        key_value=", unique_key" if is_unique else "",
        firsts=f"FROM (SELECT {key} AS unique_key) AS firsts {unless_cooling('firsts', has_cool_down=has_cool_down)}\n"
        f"    {_NO_DUPLICATE}"
        if is_unique
        else "",
        is_on=_NOTIFIED,
    )
    if not is_unique:
        return Statement(insert)
    return Statement(_ONE_UNIQUE.format(insert=insert, held_keys=held_keys(has_cool_down=has_cool_down), key=key))


@functools.cache
def many(names: tuple[str, ...], *, is_unique: bool) -> Statement:
    """Return the statement that takes values of these names, `items`, a JSON array, and `is_looking`: rows of id and position.

    It adds jobs, and answers their ids, which have the order of the items, without a position. Or it looks, if it is told to
    or a job holds the first item's key: then it answers the ids of the jobs that hold keys, with the positions of the items,
    from 1. An item that an equal job or item has overtaken has no row.
    """
    has_cool_down = "cool_down" in names
    held, key = held_keys(has_cool_down=has_cool_down), _key("item", names)
    first_key = _key("CAST(:items AS jsonb) -> 0", names)
    return Statement(
        _MANY.format(
            **_columns(names),
            looking=_LOOKING.format(held_keys=held, first_key=first_key) if is_unique else "",
            key_column=", unique_key" if is_unique else "",
            key_of_item=f", {key} AS unique_key" if is_unique else "",
            unless_looking="WHERE NOT (SELECT is_so FROM looking)" if is_unique else "",
            unless_cooling=unless_cooling("firsts", has_cool_down=has_cool_down),
            in_order=_IN_ORDER if is_unique else "ORDER BY new_id",
            notified_once=_NOTIFIED_ONCE,
            holders=_HOLDERS.format(held_keys=held, key=key) if is_unique else "",
        )
    )


def _key(args: str, names: tuple[str, ...]) -> str:
    counted = "CAST(:counted AS text[])" if "counted" in names else "NULL"
    return f"sweephand.unique_key({_KIND}, {args}, {counted})"


def _columns(names: tuple[str, ...]) -> dict[str, str]:
    """Return the columns and their values, as lists that go into a statement."""
    pairs = [_COLUMNS[name] for name in names if name in _COLUMNS]
    when = next((_WHEN[name] for name in names if name in _WHEN), None)
    if when is None:
        pairs.append(("state", "'available'"))
    else:
        pairs += [("state", f"CASE WHEN {when} > now() THEN 'scheduled' ELSE 'available' END"), ("scheduled_at", when)]
    return {"columns": ", ".join(column for column, _ in pairs), "values": ", ".join(value for _, value in pairs)}

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
_HELD_ID = "(SELECT job_id FROM {held_keys} AS held WHERE held.unique_key = {key} LIMIT 1)"
# The hashed IN and the look-ups by index hold for 10,000 items: of how long an array is nothing is known to the planner, and
# a nested loop of joins would take seconds.
#
# Whether jobs hold the keys is asked beforehand only if one holds the first item's: who enqueues a batch anew has mostly the
# same items again, or none of them. Either way an item that was not asked for, or has come meanwhile, meets ON CONFLICT
# and gets no answer; the next try, of those alone, finds the jobs that hold their keys.
_MANY = """
WITH keyed AS MATERIALIZED (
    SELECT position, item AS args, {key} AS unique_key
    FROM jsonb_array_elements(CAST(:items AS jsonb)) WITH ORDINALITY AS listed (item, position)
), given AS MATERIALIZED (       -- ids in the caller's order, so that workers take the jobs in it
    SELECT asked.*, CASE WHEN held_id IS NULL THEN nextval('sweephand.job_id_seq') END AS new_id
    FROM (SELECT keyed.*, {held_id} AS held_id FROM keyed OFFSET 0) AS asked
), inserted AS (                 -- written in the order of the keys, so that two writers cannot deadlock
    INSERT INTO sweephand.job (id, {columns}, args, unique_key)
    SELECT new_id, {values}, args, unique_key
    FROM (SELECT * FROM given WHERE new_id IS NOT NULL) AS firsts {unless_cooling}
    ORDER BY unique_key, new_id  -- and so that of equal items the first becomes the job
    {no_duplicate}
    RETURNING id, state
), notified AS (
    SELECT pg_notify('sweephand.' || CAST(:queue AS text), '')
    WHERE EXISTS (SELECT FROM inserted WHERE state = 'available') AND {is_on}
)
SELECT position, coalesce(held_id, new_id) AS id, held_id IS NOT NULL AS is_duplicate FROM given
WHERE (held_id IS NOT NULL OR new_id IN (SELECT id FROM inserted))
    AND (SELECT count(*) FROM notified) < 2  -- always so: it makes the notification happen
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
    """Return the statement that takes values of these names and `items`, a JSON array; it gives position, id and is_duplicate.

    An item that an equal job or item has overtaken has no row; try again with those.
    """
    has_cool_down = "cool_down" in names
    first_key = "(SELECT unique_key FROM keyed WHERE position = 1)"
    held = held_keys(has_cool_down=has_cool_down)
    first_id, keyed_id = (_HELD_ID.format(held_keys=held, key=key) for key in (first_key, "keyed.unique_key"))
    return Statement(
        _MANY.format(
            **_columns(names),
            key=_key("item", names) if is_unique else "CAST(NULL AS bytea)",
            unless_cooling=unless_cooling("firsts", has_cool_down=has_cool_down),
            held_id=f"CASE WHEN {first_id} IS NOT NULL THEN {keyed_id} END" if is_unique else "CAST(NULL AS bigint)",
            no_duplicate=_NO_DUPLICATE if is_unique else "",
            is_on=_NOTIFIED,
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

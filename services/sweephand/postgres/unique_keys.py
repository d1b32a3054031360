"""Say in SQL which jobs hold their unique key, so that an equal one is a duplicate: the one home of that rule.

An unfinished job holds its key, and the unique index job_unfinished_key guards it against any race. With a cool-down a
completed job holds it on for that long. No index can know of time, so that part is asked for, by the statement's snapshot: an
equal job that is enqueued in the very moment of the completion can slip through. Kinds without a cool-down are not asked.
"""

from sweephand.job import Unique

_UNFINISHED = """SELECT unique_key, id AS job_id FROM sweephand.job
        WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable')"""
_COOLING = """SELECT unique_key, id AS job_id FROM sweephand.job
        WHERE unique_key IS NOT NULL AND state = 'completed' AND cool_down_seconds IS NOT NULL
            AND finished_at > now() - make_interval(secs => cool_down_seconds)"""


def held_keys(*, has_cool_down: bool) -> str:
    """Return a query, in parentheses, of `unique_key` and `job_id`: the keys that are held and by which jobs."""
    return f"({_UNFINISHED} UNION ALL {_COOLING})" if has_cool_down else f"({_UNFINISHED})"


def unless_cooling(table: str, *, has_cool_down: bool) -> str:
    """Return a WHERE that leaves out the table's rows whose key a completed job holds; nothing without a cool-down."""
    if not has_cool_down:
        return ""
    return f"WHERE NOT EXISTS (SELECT FROM ({_COOLING}) AS cooling WHERE cooling.unique_key = {table}.unique_key)"


def cool_down_seconds(unique: Unique) -> float | None:
    """Return what the job's column cool_down_seconds gets."""
    return None if unique.cool_down is None else unique.cool_down.total_seconds()

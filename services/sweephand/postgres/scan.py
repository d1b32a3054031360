"""Turn a sweep's SELECT into SQL that yields each row's arguments as jsonb, or says why they cannot be a job's.

The expressions give the very JSON that model/arguments.py gives for the same values, so that a sweep and an enqueue agree
on what a duplicate is. A row whose values do not fit is refused by itself; it never fails the batch.
"""

import json
from collections.abc import Mapping

from psycopg import sql
from sqlalchemy import Dialect, SelectBase
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import CompileError

from sweephand.job import Job
from sweephand.model.arguments import ColumnKind, Parameter
from sweephand.model.canonical import INTEGER_BOUND, canonical
from sweephand.model.errors import AppError
from sweephand.postgres.unique_keys import held_keys
from sweephand.sweep import Sweep

# What becomes of each row, read from the top; a tick and its preview share it. `considered` is what it yields: the scanned
# rows up to the one of the last new job that the limit allows, with arguments, refusal, key and whether each is new.
_CONSIDERED = """scanned AS (       -- the rows that the sweep finds, oldest first, as arguments, at most the scan bound
    SELECT row_number() OVER () AS position, args, refusal FROM (
    {scan}
    ) AS rows LIMIT %(scan_bound)s
), keyed AS MATERIALIZED (
    SELECT position, args, refusal,
           CASE WHEN refusal IS NULL AND %(is_unique)s THEN sweephand.unique_key(%(kind)s, args, %(counted)s::text[]) END
               AS unique_key
    FROM scanned
), judged AS MATERIALIZED ( -- new: neither refused nor a duplicate of a row before it or of a job that holds the key. A
    -- subquery with LIMIT is one look into the index for each row; EXISTS could be planned as a hash of all unfinished jobs.
    SELECT placed.*, refusal IS NULL AND (unique_key IS NULL OR position = first_position) AND (
        SELECT job_id FROM {held_keys} AS held WHERE held.unique_key = placed.unique_key LIMIT 1) IS NULL AS is_new
    FROM (SELECT keyed.*, min(position) OVER (PARTITION BY unique_key) AS first_position FROM keyed) AS placed
), counted AS (
    SELECT judged.*, count(*) FILTER (WHERE is_new) OVER (ORDER BY position) AS new_so_far FROM judged
), considered AS (    -- duplicates are passed over, and the row of the last new job that the limit allows ends the batch
    SELECT * FROM counted WHERE new_so_far < %(limit)s OR (new_so_far = %(limit)s AND is_new)
)"""

# {c} is the column, quoted. Moments without a time zone, and the days of moments with one, are UTC's, whatever the session's
# time zone is. A number goes through its text, so that a real is the decimal that people and drivers see.
_AS_MOMENT = (
    "CASE WHEN pg_typeof({c}) IN ('timestamp'::regtype, 'date'::regtype) THEN {c}::timestamp "
    "ELSE {c}::timestamptz AT TIME ZONE 'UTC' END"
)
_AS_DATE = "CASE WHEN pg_typeof({c}) = 'timestamptz'::regtype THEN ({c}::timestamptz AT TIME ZONE 'UTC')::date ELSE {c}::date END"
# What a cast would fail for, and with it the whole batch: a text column may hold anything, and the type json takes escapes that
# jsonb refuses (NUL, and surrogates that are no pair).
_IS_NUMBER = r"{c}::text ~ '^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{{1,4}})?\s*$'"
_IS_FLOAT = (
    f"CASE WHEN {_IS_NUMBER} THEN {{c}}::text::numeric = 0 "
    "OR abs({c}::text::numeric) BETWEEN 4.95e-324 AND 1.7976931348623157e308 ELSE false END"
)
_IS_UUID = r"{c}::text ~* '^\{{?[0-9a-f]{{4}}(-?[0-9a-f]{{4}}){{7}}\}}?$'"
_IS_JSONB = (
    r"(pg_typeof({c}) <> 'json'::regtype OR regexp_replace({c}::text, '\\ud[89ab]..\\ud[c-f]..', '', 'gi') "
    r"!~* '\\u(0000|d[89a-f])')"
)
# Inside of JSON, canonical.py writes 1.0 as 1 and 1.50 as 1.5. Texts are matched first, so that none is changed.
_DIGITS = r"""'("(?:[^"\\]|\\.)*")|(\d+)\.0+(?!\d)|(\d+\.\d*[1-9])0+(?!\d)', '\1\2\3', 'g'"""
_AS_JSONB: Mapping[ColumnKind, str] = {
    ColumnKind.BOOLEAN: "to_jsonb({c}::boolean)",
    ColumnKind.INTEGER: f"CASE WHEN {_IS_NUMBER} THEN to_jsonb(trim_scale({{c}}::numeric)) END",
    ColumnKind.NUMBER: f"CASE WHEN {_IS_FLOAT} THEN to_jsonb({{c}}::text::float8) END",
    ColumnKind.TEXT: "to_jsonb({c}::text)",
    ColumnKind.UUID: f"CASE WHEN {_IS_UUID} THEN to_jsonb({{c}}::uuid) END",
    ColumnKind.DATE: f"to_jsonb({_AS_DATE})",
    ColumnKind.TIMESTAMP: f"""to_jsonb(to_char({_AS_MOMENT}, 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'))""",
    ColumnKind.JSON: f"CASE WHEN {_IS_JSONB} THEN regexp_replace(to_jsonb({{c}})::text, {_DIGITS})::jsonb END",
}

# When a value of the kind cannot be an argument, and how to say it. Python's years go from 1 to 9999.
_YEARS = "NOT BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999'"
_IS_INTEGER = (
    f"CASE WHEN {_IS_NUMBER} THEN {{c}}::numeric BETWEEN {-INTEGER_BOUND} AND {INTEGER_BOUND - 1} "
    "AND {c}::numeric = trunc({c}::numeric) ELSE false END"
)
_REFUSALS: Mapping[ColumnKind, tuple[str, str]] = {
    ColumnKind.INTEGER: (f"NOT {_IS_INTEGER}", "is no 64-bit integer"),
    ColumnKind.NUMBER: (f"NOT {_IS_FLOAT}", "is no finite number"),
    ColumnKind.UUID: (f"NOT {_IS_UUID}", "is no UUID"),
    ColumnKind.DATE: (f"({_AS_DATE})::timestamp {_YEARS}", "is no date of the years 1 to 9999"),
    ColumnKind.TIMESTAMP: (f"({_AS_MOMENT}) {_YEARS}", "is no moment of the years 1 to 9999"),
    ColumnKind.JSON: (f"NOT {_IS_JSONB}", "has text that PostgreSQL cannot store"),
}


def scan_sql(sweep: Sweep) -> str:
    """Return a SELECT of `args` (jsonb) and `refusal` (text, null if the row is fine), in the sweep's order.

    The sweep's own values stand in it as literals, percent signs doubled for the driver. Calls the sweep's function.

    Raises:
        AppError: the function fails, its columns are not the job's, or a value in the SELECT has no literal form.
    """
    select = selected(sweep)
    columns = [str(column.key) for column in select.selected_columns]
    unknown = [name for name in columns if name not in sweep.job.parameters.by_name]
    if unknown:  # the columns were checked at registration, but the function may return others today
        raise AppError(f"sweep {sweep.name}: the column {unknown[0]} is no parameter of {sweep.job.kind}")
    pairs = ", ".join(f"{_text(name)}, {_argument(sweep.job.parameters.by_name[name])}" for name in columns)
    refusals = ", ".join(_refusal(sweep.job.parameters.by_name[name]) for name in columns)
    defaults = _text(json.dumps(_defaults(sweep.job, columns), ensure_ascii=False))
    return (  # built of our own words, quoted names and the application's own SELECT
        f"SELECT {defaults}::jsonb || jsonb_build_object({pairs}) AS args, nullif(concat_ws('; ', {refusals}), '') AS refusal\n"  # noqa: S608
        f"    FROM (\n{literal_sql(sweep, select)}\n    ) AS found"
    )


def selected(sweep: Sweep) -> SelectBase:
    """Return the sweep's SELECT.

    Raises:
        AppError: the function that makes it fails.
    """
    try:
        return sweep.select()
    except Exception as error:  # application code; whatever it raises is this sweep's fault alone
        raise AppError(f"sweep {sweep.name}: its function failed: {type(error).__name__}: {error}") from error


def considered_sql(sweep: Sweep) -> str:
    """Return the parts of a WITH that end in `considered`: position, args, refusal, unique_key, is_new, new_so_far.

    Raises:
        AppError: a value in the SELECT has no literal form.
    """
    keys = held_keys(has_cool_down=sweep.job.unique.cool_down is not None)
    return _CONSIDERED.replace("{held_keys}", keys).replace("{scan}", scan_sql(sweep))


def considered_values(sweep: Sweep) -> dict[str, object]:
    """Return the values of what `considered_sql` asks for."""
    unique = sweep.job.unique
    return {
        "limit": sweep.limit,
        "scan_bound": sweep.scan_bound,
        "kind": sweep.job.kind,
        "is_unique": unique.mode is not None,
        "counted": None if unique.args is None else list(unique.args),
    }


def literal_sql(sweep: Sweep, select: SelectBase) -> str:
    """Return the SELECT as psycopg takes it: values as literals, percent signs doubled.

    Raises:
        AppError: a value has no literal form.
    """
    dialect: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    try:
        return str(select.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
    except CompileError as error:
        raise AppError(f"sweep {sweep.name}: a value in its SELECT cannot be written into SQL: {error}") from error


def _argument(parameter: Parameter) -> str:
    column = _column(parameter)
    return f"coalesce({_AS_JSONB[parameter.kind].format(c=column)}, 'null')"


def _refusal(parameter: Parameter) -> str:
    """Return an expression that says why the column's value is refused, or null."""
    column = _column(parameter)
    cases = [] if parameter.is_nullable else [f"WHEN {column} IS NULL THEN {_text(f'{parameter.name} is null')}"]
    if parameter.kind in _REFUSALS:
        condition, words = _REFUSALS[parameter.kind]
        cases.append(f"WHEN {condition.format(c=column)} THEN {_text(f'{parameter.name} {words}: ')} || {column}::text")
    if parameter.choices is not None:
        allowed = ", ".join(_text(str(choice)) for choice in parameter.choices)
        words = _text(f"{parameter.name} is none of its choices: ")
        cases.append(f"WHEN {column}::text NOT IN ({allowed}) THEN {words} || {column}::text")
    return f"CASE {' '.join(cases)} END" if cases else "NULL"


def _defaults(job: Job[...], columns: list[str]) -> dict[str, object]:
    return {
        name: canonical(parameter.default, path=name)
        for name, parameter in job.parameters.by_name.items()
        if name not in columns and parameter.has_default
    }


def _column(parameter: Parameter) -> str:
    return f"found.{sql.Identifier(parameter.name).as_string(None)}"


def _text(value: str) -> str:
    return sql.Literal(value).as_string(None).replace("%", "%%")

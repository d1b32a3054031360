"""A row whose values cannot be a job's arguments is refused by itself; what an application writes in its SELECT is kept."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import LiteralString
from uuid import UUID

import psycopg
import pytest
from psycopg.sql import SQL
from sqlalchemy import SelectBase, bindparam, column, desc, func, literal, select, table, text, union_all

from sweephand import App
from tests.engine.ticking import leading, stored_args


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


found = table("found", column("value"), column("position"))


def app_taking(annotation: object, statement: Callable[[], SelectBase] | None = None) -> App:
    """Return an application with a sweep of the table `found` whose job takes a `value` of this type."""
    app = App("rows")

    def take(value: object) -> None:
        pass

    def broken_rows() -> SelectBase:
        return select(found.c.value).order_by(found.c.position)

    take.__annotations__["value"] = annotation
    app.sweep(every=timedelta(seconds=60), enqueues=app.job()(take), name="broken_rows")(statement or broken_rows)
    return app


def make_table(connection: psycopg.Connection, column_type: LiteralString) -> None:
    connection.execute("DROP TABLE IF EXISTS found")
    connection.execute(SQL("CREATE TABLE found (value {}, position int)").format(SQL(column_type)))


@pytest.mark.parametrize(
    ("annotation", "column_type", "bad_values", "words"),
    [
        (int, "int", ["NULL"], "value is null"),
        (int, "numeric", ["1.5", "'NaN'", "'Infinity'", "9223372036854775808"], "value is no 64-bit integer: "),
        (int, "text", ["'seven'", "''", "'1e99999'", "'0x1F'"], "value is no 64-bit integer: "),
        (float, "float8", ["'NaN'", "'Infinity'", "'-Infinity'"], "value is no finite number: "),
        (float, "numeric", ["1e400", "1e-400", "'NaN'"], "value is no finite number: "),
        (UUID, "text", ["'f0a1'", "''", "'4dd5bd7c_4d5c-4a6b-9e0e-3b4b1c1f5d0a'"], "value is no UUID: "),
        (date, "date", ["'infinity'", "'0044-03-15 BC'", "'10000-01-01'"], "value is no date of the years 1 to 9999: "),
        (datetime, "timestamptz", ["'-infinity'", "'0044-03-15 BC'", "'10000-01-01Z'"], "value is no moment of the years"),
        (datetime, "timestamp", ["'infinity'", "'0044-03-15 BC'"], "value is no moment of the years"),
        (Colour, "text", ["'green'", "'RED'", "''"], "value is none of its choices: "),
        (dict[str, str], "json", [r"""'{"a": "\u0000"}'""", r"""'{"a": "\ud800"}'"""], "value has text that PostgreSQL"),
    ],
)
def test_values_that_cannot_be_arguments_are_refused_by_row(
    connection: psycopg.Connection,
    module_database_url: str,
    annotation: object,
    column_type: LiteralString,
    bad_values: list[LiteralString],
    words: str,
) -> None:
    make_table(connection, column_type)
    for bad_value in bad_values:
        connection.execute(SQL("INSERT INTO found VALUES ({}, 1)").format(SQL(bad_value)))
    with leading(module_database_url, app_taking(annotation)) as ticker:
        report = ticker.tick("broken_rows")

    assert (report.enqueued, report.refused) == (0, len(bad_values))
    assert report.error is not None
    assert report.error.count(words) == len(bad_values)
    assert stored_args(connection) == []


@pytest.mark.parametrize(
    ("annotation", "column_type", "value", "argument"),
    [
        (int, "text", "' 7 '", 7),
        (int, "numeric", "7.00", 7),
        (float, "real", "0.1", 0.1),
        (float, "int", "7", 7),
        (UUID, "text", "'{4DD5BD7C-4D5C-4A6B-9E0E-3B4B1C1F5D0A}'", "4dd5bd7c-4d5c-4a6b-9e0e-3b4b1c1f5d0a"),
        (date, "timestamptz", "'2026-11-30 23:30Z'", "2026-11-30"),
        (datetime, "date", "'2026-11-30'", "2026-11-30T00:00:00.000000+00:00"),
        (datetime, "timestamp", "'2026-11-30 16:00'", "2026-11-30T16:00:00.000000+00:00"),
        (int | None, "int", "NULL", None),
        (Colour, "text", "'red'", "red"),
        (dict[str, float], "json", """'{"b": 1.50, "a": 2.0}'""", {"a": 2, "b": 1.5}),
        (list[float], "float8[]", "'{1,2.5}'", [1, 2.5]),
        (int | str, "text", "'7'", "7"),
    ],
)
def test_values_of_another_type_become_the_parameters(
    connection: psycopg.Connection,
    module_database_url: str,
    annotation: object,
    column_type: LiteralString,
    value: LiteralString,
    argument: object,
) -> None:
    make_table(connection, column_type)
    connection.execute(SQL("INSERT INTO found VALUES ({}, 1)").format(SQL(value)))
    with leading(module_database_url, app_taking(annotation)) as ticker:
        ticker.execute("SET TIME ZONE 'Asia/Kathmandu'")
        ticker.tick("broken_rows")

    assert stored_args(connection) == [{"value": argument}]


@pytest.mark.parametrize(
    "statement",
    [
        lambda: select(found.c.value).where(found.c.value.like("100%%")).order_by("position"),
        lambda: select(found.c.value).where(found.c.value.regexp_match(r"^\d+% 'of' \\")).order_by(desc(found.c.position)),
        lambda: (
            select(found.c.value).where(text("position % 2 = 1"), found.c.value.in_(["100% 'of' \\", "%s"])).order_by("value")
        ),
        lambda: select(found.c.value).where(found.c.value == bindparam(None, "100% 'of' \\")).order_by(text("1")),
        lambda: union_all(select(found.c.value), select(literal("x")).where(text("false"))).order_by("value"),
        lambda: select(func.max(found.c.value).label("value")).group_by(found.c.position).order_by(found.c.position),
        lambda: select(found.c.value).with_for_update(skip_locked=True).order_by(found.c.position).limit(1),
        lambda: select(select(found.c.value).cte("some").c.value).order_by("value"),
        lambda: select(found.c.value).distinct().order_by(found.c.value.desc().nulls_last()),
    ],
)
def test_what_a_select_may_hold_is_carried_out_as_written(
    connection: psycopg.Connection, module_database_url: str, statement: Callable[[], SelectBase]
) -> None:
    make_table(connection, "text")
    connection.execute("INSERT INTO found VALUES ('100%% ''of'' \\', 1)", {})
    with leading(module_database_url, app_taking(str, statement)) as ticker:
        ticker.tick("broken_rows")

    assert stored_args(connection) == [{"value": "100% 'of' \\"}]


def test_another_projects_tables_are_swept_by_ten_lines_as_they_are(
    connection: psycopg.Connection, module_database_url: str
) -> None:
    connection.execute("""
        CREATE SCHEMA "Legacy";
        CREATE TABLE "Legacy"."Order" (
            "OrderKey" uuid, "Customer Name" varchar(40), "Placed" timestamp, PRIMARY KEY ("OrderKey", "Customer Name"));
        INSERT INTO "Legacy"."Order" VALUES
            ('0190c7a0-0000-7000-8000-000000000002', 'O''Hara % Söhne', now() at time zone 'UTC' - interval '1 hour'),
            ('0190c7a0-0000-7000-8000-000000000001', 'Ada', now() at time zone 'UTC' - interval '2 hours')""")

    app = App("ten-lines")
    orders = table("Order", column("OrderKey"), column("Customer Name"), column("Placed"), schema="Legacy")

    @app.job()
    def bill(order_key: UUID, customer: str) -> None:
        pass

    @app.sweep(every=timedelta(seconds=60), enqueues=bill)
    def unbilled() -> SelectBase:
        keys = orders.c.OrderKey.label("order_key"), orders.c["Customer Name"].label("customer")
        return select(*keys).order_by(orders.c.Placed)

    with leading(module_database_url, app) as ticker:
        report = ticker.tick("unbilled")

    assert (report.enqueued, report.refused) == (2, 0)
    assert [bill.decode(args) for args in stored_args(connection)] == [
        {"order_key": UUID("0190c7a0-0000-7000-8000-000000000001"), "customer": "Ada"},
        {"order_key": UUID("0190c7a0-0000-7000-8000-000000000002"), "customer": "O'Hara % Söhne"},
    ]

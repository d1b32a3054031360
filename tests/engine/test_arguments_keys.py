"""A sweep and an enqueue agree on what a duplicate is: the same values have the same unique key, whatever the column's type."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from enum import StrEnum
from hashlib import sha256
from typing import TypeAlias
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import Select, column, select, table, text

from sweephand import App, EnqueueOutcome, enqueue, enqueue_many
from sweephand.postgres.enqueue import enqueue_encoded
from tests.engine.ticking import Ticker, leading, stored_args
from tests.support.jobs import open_connection

app = App("keys")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


Leaf: TypeAlias = int | float | str | bool | None

NAMES = ("small", "big", "whole", "price", "weight", "rough", "name", "key", "day", "moment", "local", "flag", "document",
         "colour", "maybe", "maybe_moment")  # fmt: skip
TABLE = """CREATE TABLE thing (small smallint, big bigint, whole numeric, price numeric, weight float8, rough real, name text,
    key uuid, day date, moment timestamptz, local timestamp, flag boolean, document jsonb, colour text, maybe int,
    maybe_moment timestamptz)"""
things = table("thing", *(column(name) for name in NAMES))


@app.job()
def mend(
    small: int,
    big: int,
    whole: int,
    price: float,
    weight: float,
    rough: float,
    name: str,
    key: UUID,
    day: date,
    moment: datetime,
    local: datetime,
    flag: bool,  # noqa: FBT001 - a job has named parameters only
    document: dict[str, Leaf | list[Leaf]],
    colour: Colour,
    maybe: int | None,
    maybe_moment: datetime | None,
    note: str = "by default: ä\"'%\\",
) -> None:
    pass


@app.sweep(cron="0 0 1 1 *", enqueues=mend)
def broken_things() -> Select[tuple[object, ...]]:
    return select(*(things.c[name] for name in NAMES)).order_by(text("1"))


@app.job()
def label(name: str) -> None:
    pass


@app.sweep(cron="0 0 1 1 *", enqueues=label, limit=1_000)
def unlabelled_things() -> Select[tuple[object, ...]]:
    return select(things.c.name).order_by(things.c.name)


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
floats = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.timezones(no_cache=True))  # noqa: DTZ001
leaves = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e15, 1e15) | names | st.booleans() | st.none() | st.just('1.0 "2.50" \\')
documents = st.dictionaries(names, leaves | st.lists(leaves, max_size=3), max_size=3)
rows = st.fixed_dictionaries(
    {
        "small": st.integers(-(2**15), 2**15 - 1),
        "big": st.integers(-(2**63), 2**63 - 1),
        "whole": st.integers(-(2**63), 2**63 - 1),
        "price": floats.filter(lambda price: abs(price) < 1e100),
        "weight": floats,
        "rough": st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False),
        "name": names,
        "key": st.uuids(),
        "day": st.dates(),
        "moment": moments,
        "local": st.datetimes(datetime(1, 1, 1)),  # noqa: DTZ001 - a timestamp without a time zone
        "flag": st.booleans(),
        "document": documents.map(Jsonb),
        "colour": st.sampled_from([colour.value for colour in Colour]),
        "maybe": st.none() | st.integers(0, 9),
        "maybe_moment": st.none() | moments,
    }
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


@pytest.fixture
def ticker(database_url: str) -> Iterator[Ticker]:
    with open_connection(database_url) as connection:
        connection.execute(TABLE)
    with leading(database_url, app) as ticker:
        yield ticker


def test_a_row_and_its_values_as_read_by_python_are_duplicates(database_url: str, ticker: Ticker) -> None:
    with open_connection(database_url) as connection:
        connection.execute("SET TIME ZONE 'UTC'")

        @settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
        @given(row=rows, zone=st.sampled_from(ZONES))
        def check(row: dict[str, object], zone: str) -> None:
            connection.execute("DELETE FROM thing")
            connection.execute("DELETE FROM sweephand.job")
            connection.execute(INSERT, row)
            ticker.execute("SELECT set_config('TimeZone', %(zone)s, false)", {"zone": zone})

            report = ticker.tick("broken_things")
            with connection.transaction():
                outcome = enqueue_encoded(connection, mend, mend.encode(as_read_by_python(connection)))

            assert (report.enqueued, report.refused, report.error) == (1, 0, None)
            assert outcome.is_duplicate, stored_args(connection)

        check()
        ticker.execute("SET extra_float_digits = 0")
        check()


INSERT = f"INSERT INTO thing VALUES ({', '.join(f'%({name})s' for name in NAMES)})"  # noqa: S608 - our own names


def as_read_by_python(connection: psycopg.Connection) -> dict[str, object]:
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute("SELECT * FROM thing").fetchone()
    assert found is not None
    return found | {
        "whole": int(found["whole"]),
        "price": float(found["price"]),
        "local": found["local"].replace(tzinfo=UTC),
        "colour": Colour(found["colour"]),
    }


def test_the_order_of_keys_does_not_matter(database_url: str) -> None:
    @App("other").job()
    def note(document: dict[str, int]) -> None:
        pass

    with open_connection(database_url) as connection, connection.transaction():
        first = enqueue(connection, note, document={"b": 1, "a": 2, "aa": 3})
        second = enqueue(connection, note, document={"aa": 3, "a": 2, "b": 1})

    assert not first.is_duplicate
    assert second == EnqueueOutcome(first.job_id, is_duplicate=True)


def test_only_the_arguments_that_count_make_a_duplicate(database_url: str) -> None:
    @App("other").job(unique_args=("product_id",))
    def note(product_id: int, by: str) -> None:
        pass

    with open_connection(database_url) as connection, connection.transaction():
        first = enqueue(connection, note, product_id=7, by="Ada")
        same = enqueue(connection, note, product_id=7, by="Grace")
        other = enqueue(connection, note, product_id=8, by="Ada")

    assert (first.is_duplicate, same.is_duplicate, other.is_duplicate) == (False, True, False)


def test_a_short_identity_is_its_own_key_and_a_longer_one_its_hash(database_url: str, ticker: Ticker) -> None:
    lengths = range(20, 60)  # 64 bytes are reached with 46 letters, or with 23 of two bytes
    all_names = [letter * length for letter in ("a", "b", "ä") for length in lengths]

    with open_connection(database_url) as connection:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO thing (name) VALUES (%s)", [(name,) for name in all_names])
        report = ticker.tick("unlabelled_things")
        with connection.transaction():
            again = enqueue_many(connection, label, [{"name": name} for name in all_names])
        keys = connection.execute("SELECT unique_key, args ->> 'name' FROM sweephand.job").fetchall()

    assert (report.enqueued, report.refused) == (len(all_names), 0)
    assert all(outcome.is_duplicate for outcome in again)
    assert len({outcome.job_id for outcome in again}) == len(all_names)
    for key, name in keys:
        identity = f'label {{"name": "{name}"}}'.encode()
        assert key == (identity if len(identity) <= 64 else b"\0" + sha256(identity).digest())


def test_a_megabyte_is_an_argument_like_any_other(database_url: str) -> None:
    @App("other").job()
    def note(text: str) -> None:
        pass

    long = "ä" * 512 * 1024

    with open_connection(database_url) as connection, connection.transaction():
        first = enqueue(connection, note, text=long)
        second = enqueue(connection, note, text=long)
        other = enqueue(connection, note, text=f"{long}!")
        stored = stored_args(connection)

    assert (first.is_duplicate, second.is_duplicate, other.is_duplicate) == (False, True, False)
    assert note.decode(stored[0]) == {"text": long}

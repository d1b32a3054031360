"""A preview says what a tick would do, does nothing, and knows whether an index serves it."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import BigInteger, Column, DateTime, MetaData, Select, SelectBase, Table, Text, func, select, text

from sweephand import App, ConflictError
from sweephand.model.ticks import LeaderHistory, plan
from sweephand.postgres import leader, sweeps
from sweephand.postgres.connect import connect_async
from sweephand.postgres.dispatch import dispatch
from sweephand.postgres.preview import preview
from sweephand.sweep import Sweep
from tests.support.jobs import open_connection

shelf = Table(
    "shelf",
    MetaData(),
    Column("id", BigInteger),
    Column("room", Text),
    Column("untidied_at", DateTime(timezone=True)),
    Column("tidied_at", DateTime(timezone=True)),
)


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as opened:
        opened.execute("CREATE TABLE shelf (id bigint, room text, untidied_at timestamptz, tidied_at timestamptz)")
        yield opened


def _untidy_shelves() -> Select[tuple[int]]:
    return (
        select(shelf.c.id.label("shelf_id"))
        .where(shelf.c.tidied_at.is_(None), shelf.c.untidied_at <= func.now() - timedelta(minutes=10))
        .order_by(shelf.c.untidied_at)
    )


def _sweep(found: SelectBase | None = None, *, limit: int = 10, scan_bound: int | None = None) -> Sweep:
    app = App("shop")

    @app.job()
    def tidy_shelf(shelf_id: int) -> None:
        """Tidy a shelf."""

    return app.sweep(
        every=timedelta(seconds=60),
        limit=limit,
        scan_bound=scan_bound,
        enqueues=tidy_shelf,
        name="untidy_shelves",
        statement_timeout=timedelta(seconds=1),
    )(lambda: _untidy_shelves() if found is None else found)


def _insert_shelves(connection: psycopg.Connection, count: int, *, tidy: int = 0) -> None:
    """Add untidy shelves 1 to `count`, the lowest the longest, and then tidy ones."""
    connection.execute(
        "INSERT INTO shelf SELECT n, 'cellar', now() - interval '1 day' + n * interval '1 ms', "
        "CASE WHEN n > %(count)s THEN now() END FROM generate_series(1, %(count)s + %(tidy)s) AS n",
        {"count": count, "tidy": tidy},
    )


def _enqueue(connection: psycopg.Connection, shelf_id: int) -> None:
    connection.execute(
        "INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, unique_key) "
        "SELECT 'tidy_shelf', 'default', 'retryable', args, 25, 600, sweephand.unique_key('tidy_shelf', args, NULL) "
        "FROM (SELECT jsonb_build_object('shelf_id', %s::bigint) AS args) AS given",
        [shelf_id],
    )


def _written(connection: psycopg.Connection) -> object:
    """Return how many rows the tables have, and how far the sequences have come."""
    return connection.execute(
        "SELECT (SELECT count(*) FROM sweephand.job), (SELECT count(*) FROM sweephand.tick), "
        "(SELECT count(*) FROM sweephand.audit), (SELECT array_agg(last_value ORDER BY sequencename) FROM pg_sequences)"
    ).fetchone()


def test_rows_duplicates_and_refusals_are_counted_as_a_tick_would(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 5)
    connection.execute("INSERT INTO shelf SELECT * FROM shelf WHERE id = 5")
    connection.execute("INSERT INTO shelf VALUES (NULL, 'attic', now() - interval '2 days', NULL)")
    _enqueue(connection, 1)

    found = preview(connection, _sweep())

    assert (found.matching, found.considered, found.enqueued, found.skipped_duplicates, found.refused) == (7, 7, 4, 2, 1)
    assert found.refusals == ('shelf_id is null in {"shelf_id": null}',)
    assert [(row.args, row.fate) for row in found.first_rows[:3]] == [
        ('{"shelf_id": null}', "refused: shelf_id is null"),
        ('{"shelf_id": 1}', "duplicate of job 1"),
        ('{"shelf_id": 2}', "would be enqueued"),
    ]


async def test_the_tick_then_does_what_the_preview_said(connection: psycopg.Connection, database_url: str) -> None:
    _insert_shelves(connection, 30)
    connection.execute("INSERT INTO shelf SELECT * FROM shelf WHERE id IN (2, 3)")
    connection.execute("INSERT INTO shelf VALUES (NULL, 'attic', now() - interval '2 days', NULL)")
    _enqueue(connection, 1)
    sweep = _sweep(limit=10)
    said = preview(connection, sweep)

    async with await connect_async(database_url, application_name="test") as dispatcher:
        term = await leader.gain(dispatcher, name="shop", holder="dispatcher-0")
        await sweeps.register(dispatcher, term, [sweep])
        snapshot = await sweeps.read_states(dispatcher, app="shop")
        state = snapshot.states[sweep.name]
        history = LeaderHistory(since=term.since, is_first_of_term=True)
        step = plan(sweep.policy, state, history, now=snapshot.now)
        assert step is not None
        assert step.due is not None
        done = await dispatch(dispatcher, term, sweep=sweep, step=step, due=step.due, expected_tick_at=state.next_tick_at)

    assert (done.enqueued, done.skipped_duplicates, done.refused) == (said.enqueued, said.skipped_duplicates, said.refused)
    assert done.scan_truncated == said.is_truncated


def test_the_limit_ends_the_batch(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 30)
    _enqueue(connection, 1)

    found = preview(connection, _sweep(limit=10))

    assert (found.matching, found.considered, found.enqueued, found.skipped_duplicates) == (30, 11, 10, 1)
    assert found.is_truncated is False


def test_a_scan_bound_that_is_reached_is_said(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 30)
    for shelf_id in range(1, 12):
        _enqueue(connection, shelf_id)

    found = preview(connection, _sweep(limit=10, scan_bound=12))

    assert (found.considered, found.enqueued, found.is_truncated) == (12, 1, True)


def test_nothing_is_written_not_even_by_a_function_that_would(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 5)
    before = _written(connection)

    preview(connection, _sweep())

    assert _written(connection) == before
    connection.execute("CREATE SEQUENCE visits")
    counting = _untidy_shelves().where(text("nextval('visits') > 0"))
    with pytest.raises(ConflictError, match=r"sweep untidy_shelves: its SELECT fails, .* cannot execute nextval\(\)"):
        preview(connection, _sweep(counting))


def test_a_sequential_scan_of_a_large_table_is_said_with_the_index_to_add(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 100, tidy=20_000)
    connection.execute("ANALYZE shelf")

    found = preview(connection, _sweep())

    assert found.plan.is_served_by_indexes is False
    assert [(read.table, read.index, read.table_rows) for read in found.plan.reads] == [("shelf", None, 20_100)]
    (advice,) = found.advice
    assert advice == "add an index like: CREATE INDEX CONCURRENTLY ON shelf (untidied_at) WHERE tidied_at IS NULL"
    connection.execute(advice.removeprefix("add an index like: ").encode())

    served = preview(connection, _sweep())

    assert served.plan.is_served_by_indexes is True
    assert [read.index for read in served.plan.reads] == ["shelf_untidied_at_idx"]
    assert served.advice == ()
    assert served.plan.cost < found.plan.cost


def test_a_small_table_needs_no_index(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 10)
    connection.execute("ANALYZE shelf")

    found = preview(connection, _sweep())

    assert found.plan.is_served_by_indexes is True
    assert found.advice == ()


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        (
            _untidy_shelves().where(shelf.c.room == "it's 50% full"),
            "CREATE INDEX CONCURRENTLY ON shelf (untidied_at) WHERE tidied_at IS NULL AND room = 'it''s 50% full'",
        ),
        (
            _untidy_shelves().order_by(None).order_by(shelf.c.room.desc(), shelf.c.id),
            "CREATE INDEX CONCURRENTLY ON shelf (room, id, untidied_at) WHERE tidied_at IS NULL",
        ),
        (
            select(shelf.c.id.label("shelf_id")).where(shelf.c.room.in_(["a", "b"])).order_by(func.lower(shelf.c.room)),
            "CREATE INDEX CONCURRENTLY ON shelf (room)",
        ),
        (
            select(shelf.c.id.label("shelf_id")).order_by(text("1")),
            "it has no condition on shelf that an index could serve; narrow the SELECT",
        ),
    ],
)
def test_the_index_is_made_of_order_and_conditions(
    connection: psycopg.Connection, changed: Select[tuple[int]], advice: str
) -> None:
    _insert_shelves(connection, 100, tidy=5_000)
    connection.execute("ANALYZE shelf")

    (found,) = preview(connection, _sweep(changed)).advice

    assert found.removeprefix("add an index like: ") == advice


def test_a_select_that_fails_is_one_line(connection: psycopg.Connection) -> None:
    connection.execute("DROP TABLE shelf")

    with pytest.raises(ConflictError) as caught:
        preview(connection, _sweep())

    assert str(caught.value) == (
        'sweep untidy_shelves: its SELECT fails, so that its ticks end as errors: relation "shelf" does not exist'
    )


def test_a_select_that_takes_too_long_is_said_with_the_index_to_add(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 100, tidy=5_000)
    connection.execute("ANALYZE shelf")
    slow = _untidy_shelves().where(text("pg_sleep(0.1) IS NOT NULL"))

    with pytest.raises(ConflictError, match=r"longer than its statement_timeout of 1 s, .*; add an index like: CREATE INDEX"):
        preview(connection, _sweep(slow))


def test_a_select_of_plain_text_gets_words(connection: psycopg.Connection) -> None:
    _insert_shelves(connection, 100, tidy=5_000)
    connection.execute("ANALYZE shelf")
    listed = text("(SELECT id AS shelf_id, untidied_at FROM shelf) AS listed")
    plain = select(Column("shelf_id", BigInteger)).select_from(listed).order_by(text("untidied_at"))

    (found,) = preview(connection, _sweep(plain)).advice

    assert found == "add an index on the columns of shelf that the SELECT's WHERE and ORDER BY name"

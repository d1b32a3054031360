"""Which products the sweep finds, how cheaply, and the command that makes some."""

import os
import subprocess
import sys
from typing import LiteralString

import pytest
from sqlalchemy import text

from storefront.adapters.postgres.stuck_publications import insert_stuck_products, stuck_publications
from sweephand.testing import drain, run_sweep, sweep_rows
from tests.storefront.shop import Shop

INSERT = """
    INSERT INTO storefront.product (name, description, price_cents, created_at, published_at)
    SELECT 'Lamp ' || n, '', n, now() - make_interval(mins => :minutes), CASE WHEN :is_published THEN now() END
    FROM generate_series(1, :count) AS n RETURNING id
"""


def insert(shop: Shop, *, minutes: int, count: int = 1, is_published: bool = False) -> list[object]:
    rows = shop.query(INSERT, minutes=minutes, count=count, is_published=is_published)
    return [product_id for (product_id,) in rows]


def found(shop: Shop) -> list[object]:
    with shop.engine.begin() as connection:
        return [row["product_id"] for row in sweep_rows(connection, shop.app.sweeps["stuck_publications"])]


def test_products_unpublished_for_ten_minutes_are_found_oldest_first(shop: Shop) -> None:
    young = insert(shop, minutes=9)
    older = insert(shop, minutes=11)
    oldest = insert(shop, minutes=12)
    insert(shop, minutes=60, is_published=True)

    assert found(shop) == [*oldest, *older]
    assert young[0] not in found(shop)


def test_the_sweep_enqueues_a_hundred_publications_at_a_time_that_publish_the_products(shop: Shop) -> None:
    insert(shop, minutes=60, count=101)
    sweep = shop.app.sweeps["stuck_publications"]

    with shop.engine.begin() as connection:
        first, second, third = (run_sweep(connection, sweep) for _ in range(3))
        report = drain(connection, shop.app)

    assert [(tick.enqueued, tick.skipped_duplicates) for tick in (first, second, third)] == [(100, 0), (1, 100), (0, 101)]
    assert report.completed == 101
    assert found(shop) == []


@pytest.mark.parametrize("statistics", ["ANALYZE storefront.product", "SELECT 'none yet'"])
def test_the_scan_reads_only_stuck_products_among_many(shop: Shop, statistics: LiteralString) -> None:
    insert(shop, minutes=60, count=50_000, is_published=True)
    insert(shop, minutes=30, count=100)
    shop.administer(statistics)

    with shop.engine.connect() as connection:
        scan = stuck_publications().limit(100).compile(connection, compile_kwargs={"literal_binds": True})
        plan = "\n".join(connection.execute(text(f"EXPLAIN (ANALYZE, TIMING OFF) {scan}")).scalars())

    assert "product_unpublished" in plan
    assert "Seq Scan" not in plan
    assert "Rows Removed" not in plan


def test_stuck_products_are_inserted_without_jobs_and_found_at_once(shop: Shop) -> None:
    ids = insert_stuck_products(shop.engine, count=3)

    assert found(shop) == list(ids)
    assert shop.query("SELECT * FROM sweephand.job") == []


def run_command(*arguments: str, database_url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "storefront.stuck", *arguments],
        env={**os.environ, "DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_inserts_them_and_says_which(shop: Shop) -> None:
    done = run_command("--count", "12", database_url=shop.database_url)

    ids = found(shop)
    assert done.returncode == 0
    assert len(ids) == 12
    assert done.stdout.startswith(f"inserted 12 stuck products, ids {ids[0]} to {ids[-1]}; ")


@pytest.mark.parametrize(
    ("database_url", "line"),
    [
        ("", "Error: DATABASE_URL: is not set; it must be of the form postgresql://user:password@host:5432/name\n"),
        ("postgresql://127.0.0.1:1/shop", "Error: the database cannot be reached; try again later\n"),
    ],
)
def test_the_command_says_in_one_line_that_it_has_no_database(database_url: str, line: str) -> None:
    done = run_command(database_url=database_url)

    assert (done.returncode, done.stderr) == (1, line)


def test_the_command_says_in_one_line_that_the_tables_are_missing(empty_database_url: str) -> None:
    done = run_command(database_url=empty_database_url)

    assert (done.returncode, done.stderr) == (1, "Error: the database has no tables yet; run `sweephand migrate`\n")

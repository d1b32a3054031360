"""Which orders the sweep finds, and how cheaply."""

from typing import LiteralString

import pytest
from sqlalchemy import text

from storefront.adapters.postgres.unconfirmed_orders import unconfirmed_orders
from sweephand.testing import drain, run_sweep, sweep_rows
from tests.storefront.shop import Shop

INSERT = """
    INSERT INTO storefront.customer_order (product_id, quantity, email, placed_at, confirmed_at)
    SELECT :product_id, 1, 'ada@example.com', now() - make_interval(mins => :minutes), CASE WHEN :is_confirmed THEN now() END
    FROM generate_series(1, :count) RETURNING id
"""


def insert(shop: Shop, *, minutes: int, count: int = 1, is_confirmed: bool = False) -> list[object]:
    product = shop.add_product_for_sale()
    rows = shop.query(INSERT, product_id=product.id, minutes=minutes, count=count, is_confirmed=is_confirmed)
    return [order_id for (order_id,) in rows]


def found(shop: Shop) -> list[object]:
    with shop.engine.begin() as connection:
        return [row["order_id"] for row in sweep_rows(connection, shop.app.sweeps["unconfirmed_orders"])]


def test_orders_unconfirmed_for_ten_minutes_are_found_oldest_first(shop: Shop) -> None:
    young = insert(shop, minutes=9)
    older = insert(shop, minutes=11)
    oldest = insert(shop, minutes=12)
    insert(shop, minutes=60, is_confirmed=True)

    assert found(shop) == [*oldest, *older]
    assert young[0] not in found(shop)


def test_the_sweep_enqueues_a_hundred_confirmations_at_a_time_that_confirm_the_orders(shop: Shop) -> None:
    ids = insert(shop, minutes=60, count=101)
    sweep = shop.app.sweeps["unconfirmed_orders"]

    with shop.engine.begin() as connection:
        first, second, third = (run_sweep(connection, sweep) for _ in range(3))
        report = drain(connection, shop.app)

    assert [(tick.enqueued, tick.skipped_duplicates) for tick in (first, second, third)] == [(100, 0), (1, 100), (0, 101)]
    assert report.completed == 101
    assert sorted(shop.mailer.sent) == ids
    assert found(shop) == []


@pytest.mark.parametrize("statistics", ["ANALYZE storefront.customer_order", "SELECT 'none yet'"])
def test_the_scan_reads_only_unconfirmed_orders_among_many(shop: Shop, statistics: LiteralString) -> None:
    insert(shop, minutes=60, count=50_000, is_confirmed=True)
    insert(shop, minutes=30, count=100)
    shop.administer(statistics)

    with shop.engine.connect() as connection:
        scan = unconfirmed_orders().limit(100).compile(connection, compile_kwargs={"literal_binds": True})
        plan = "\n".join(connection.execute(text(f"EXPLAIN (ANALYZE, TIMING OFF) {scan}")).scalars())

    assert "customer_order_unconfirmed" in plan
    assert "Seq Scan" not in plan
    assert "Rows Removed" not in plan

"""Orders whose confirmation got lost, for the sweep."""

from datetime import timedelta

from sqlalchemy import Select, func, select

from storefront.adapters.postgres.tables import orders

GRACE = timedelta(minutes=10)


def unconfirmed_orders() -> Select[int]:
    """Select the orders that nobody confirmed within 10 minutes of their placing, oldest first."""
    return (
        select(orders.c.id.label("order_id"))
        .where(orders.c.confirmed_at.is_(None), orders.c.placed_at <= func.now() - GRACE)
        .order_by(orders.c.placed_at, orders.c.id)
    )

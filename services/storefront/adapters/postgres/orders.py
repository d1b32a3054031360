"""Orders in PostgreSQL."""

from collections.abc import Callable

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy.orm import Session

from storefront.adapters.postgres.moments import utc
from storefront.adapters.postgres.tables import orders
from storefront.domain.errors import OrderNotFoundError
from storefront.domain.order import Order, OrderDraft, OrderId
from storefront.domain.product import ProductId


class PostgresOrders:
    """Fulfil the Orders port within the unit of work whose open session `session()` returns."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session = session

    def add(self, draft: OrderDraft) -> Order:
        """Insert the order; the database gives the id and the time."""
        statement = insert(orders).values(product_id=draft.product_id, quantity=draft.quantity, email=draft.email)
        return _order(self._session().execute(statement.returning(orders)).one())

    def get(self, order_id: OrderId) -> Order:
        """Select the order by its id."""
        row = self._session().execute(select(orders).where(orders.c.id == order_id)).one_or_none()
        if row is None:
            raise OrderNotFoundError(order_id)
        return _order(row)

    def confirm(self, order_id: OrderId) -> bool:
        """Update the order if it is still unconfirmed: of two attempts at once, the second finds no row."""
        statement = (
            update(orders)
            .where(orders.c.id == order_id, orders.c.confirmed_at.is_(None))
            .values(confirmed_at=func.now())
            .returning(orders.c.id)
        )
        return self._session().execute(statement).one_or_none() is not None


def _order(row: Row[*tuple[object, ...]]) -> Order:
    return Order(
        id=OrderId(row.id),
        product_id=ProductId(row.product_id),
        quantity=row.quantity,
        email=row.email,
        placed_at=utc(row.placed_at),
        confirmed_at=None if row.confirmed_at is None else utc(row.confirmed_at),
    )

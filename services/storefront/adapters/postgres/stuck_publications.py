"""Products whose publication got lost, for the sweep, and a way to make some."""

from datetime import timedelta

from sqlalchemy import Engine, Integer, Select, func, insert, literal, select

from storefront.adapters.postgres.failures import translated_failures
from storefront.adapters.postgres.tables import products
from storefront.domain.product import ProductId

GRACE = timedelta(minutes=10)


def stuck_publications() -> Select[int]:
    """Select the products that nobody published within 10 minutes of their creation, oldest first."""
    return (
        select(products.c.id.label("product_id"))
        .where(products.c.published_at.is_(None), products.c.created_at <= func.now() - GRACE)
        .order_by(products.c.created_at, products.c.id)
    )


def insert_stuck_products(engine: Engine, *, count: int) -> tuple[ProductId, ...]:
    """Insert `count` products that the sweep will find, as if their jobs were lost; return their ids, oldest first.

    Raises:
        StorageUnavailableError: PostgreSQL cannot be used now.
    """
    number = func.generate_series(1, count, type_=Integer).column_valued("number")
    rows = select(
        func.concat("Stuck product ", number),
        literal("Its publication was lost"),
        number * 100,
        func.now() - GRACE - (count - number) * timedelta(seconds=1),
    )
    statement = insert(products).from_select(["name", "description", "price_cents", "created_at"], rows)
    with translated_failures(), engine.begin() as connection:
        return tuple(sorted(ProductId(row.id) for row in connection.execute(statement.returning(products.c.id))))

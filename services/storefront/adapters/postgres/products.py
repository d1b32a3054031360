"""Products in PostgreSQL."""

from collections.abc import Callable

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy.orm import Session

from storefront.adapters.postgres.moments import utc
from storefront.adapters.postgres.tables import products
from storefront.domain.errors import ProductNotFoundError
from storefront.domain.product import Product, ProductDraft, ProductId


class PostgresProducts:
    """Fulfil the Products port within the unit of work whose open session `session()` returns."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session = session

    def add(self, draft: ProductDraft) -> Product:
        """Insert the product; the database gives the id and the time."""
        statement = insert(products).values(name=draft.name, description=draft.description, price_cents=draft.price_cents)
        return _product(self._session().execute(statement.returning(products)).one())

    def get(self, product_id: ProductId) -> Product:
        """Select the product by its id."""
        row = self._session().execute(select(products).where(products.c.id == product_id)).one_or_none()
        if row is None:
            raise ProductNotFoundError(product_id)
        return _product(row)

    def publish(self, product_id: ProductId, *, in_stock: bool) -> bool:
        """Update the product if it is still unpublished: of two attempts at once, the second finds no row."""
        statement = (
            update(products)
            .where(products.c.id == product_id, products.c.published_at.is_(None))
            .values(in_stock=in_stock, published_at=func.now())
            .returning(products.c.id)
        )
        return self._session().execute(statement).one_or_none() is not None


def _product(row: Row[*tuple[object, ...]]) -> Product:
    return Product(
        id=ProductId(row.id),
        name=row.name,
        description=row.description,
        price_cents=row.price_cents,
        in_stock=row.in_stock,
        created_at=utc(row.created_at),
        published_at=None if row.published_at is None else utc(row.published_at),
    )

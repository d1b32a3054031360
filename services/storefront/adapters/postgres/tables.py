"""The shop's tables, as the newest migration leaves them."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Identity, Index, MetaData, Table, Text, func

metadata = MetaData(schema="storefront")

products = Table(
    "product",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("price_cents", BigInteger, nullable=False),
    Column("in_stock", Boolean),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("published_at", DateTime(timezone=True)),
)

# Serves the sweep: it holds the few unpublished products only, oldest first, however many published ones there are.
Index("product_unpublished", products.c.created_at, products.c.id, postgresql_where=products.c.published_at.is_(None))

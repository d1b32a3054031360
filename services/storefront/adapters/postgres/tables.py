"""The shop's tables, as the newest migration leaves them."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKey, Identity, Index, Integer, MetaData, Table, Text, func

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

# `order` is a word of SQL's, to be quoted wherever somebody types it.
orders = Table(
    "customer_order",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("product_id", BigInteger, ForeignKey(products.c.id), nullable=False),
    Column("quantity", Integer, nullable=False),
    Column("email", Text, nullable=False),
    Column("placed_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("confirmed_at", DateTime(timezone=True)),
)

# Serves the sweep, as the one above does.
Index("customer_order_unconfirmed", orders.c.placed_at, orders.c.id, postgresql_where=orders.c.confirmed_at.is_(None))

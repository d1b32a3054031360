"""Create the orders."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table, and the index that serves the sweep of unconfirmed orders."""
    op.create_table(
        "customer_order",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("product_id", sa.BigInteger, sa.ForeignKey("storefront.product.id"), nullable=False),
        sa.Column("quantity", sa.Integer, sa.CheckConstraint("quantity > 0"), nullable=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("placed_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("confirmed_at", sa.DateTime(timezone=True)),
        schema="storefront",
    )
    op.create_index(
        "customer_order_unconfirmed",
        "customer_order",
        ["placed_at", "id"],
        schema="storefront",
        postgresql_where=sa.text("confirmed_at IS NULL"),
    )

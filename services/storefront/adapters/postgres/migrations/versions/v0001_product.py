"""Create the products."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table, and the index that serves the sweep of stuck publications."""
    op.create_table(
        "product",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("price_cents", sa.BigInteger, sa.CheckConstraint("price_cents >= 0"), nullable=False),
        sa.Column("in_stock", sa.Boolean),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("published_at", sa.DateTime(timezone=True)),
        schema="storefront",
    )
    op.create_index(
        "product_unpublished",
        "product",
        ["created_at", "id"],
        schema="storefront",
        postgresql_where=sa.text("published_at IS NULL"),
    )

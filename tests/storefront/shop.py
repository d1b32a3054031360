"""The shop's parts, as tests use them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import LiteralString

from sqlalchemy import Engine, text

from storefront.adapters.jobs import register_jobs
from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.migrate import migrate
from storefront.adapters.postgres.unit_of_work import postgres_unit_of_work
from storefront.domain.order import Order, OrderDraft
from storefront.domain.product import Product, ProductDraft
from storefront.ports import UnitOfWork
from sweephand import App
from sweephand.postgres.connect import connect
from tests.storefront.mailers import FakeMailer
from tests.storefront.warehouses import FakeWarehouse


@dataclass(frozen=True, slots=True)
class Shop:
    """The shop's parts; `app` has its jobs and sweeps."""

    database_url: str
    app: App
    engine: Engine
    warehouse: FakeWarehouse
    mailer: FakeMailer

    def new_unit_of_work(self) -> AbstractContextManager[UnitOfWork]:
        return postgres_unit_of_work(self.engine, app=self.app)

    def add_product(self) -> Product:
        """Store a product whose publication nobody asked for."""
        with self.new_unit_of_work() as uow:
            return uow.products.add(ProductDraft(name="Lamp", description="Gives light", price_cents=1999))

    def add_product_for_sale(self, *, in_stock: bool = True) -> Product:
        """Store a published product."""
        product = self.add_product()
        with self.new_unit_of_work() as uow:
            uow.products.publish(product.id, in_stock=in_stock)
            return uow.products.get(product.id)

    def add_order(self) -> Order:
        """Store an order whose confirmation nobody asked for."""
        product = self.add_product_for_sale()
        with self.new_unit_of_work() as uow:
            return uow.orders.add(OrderDraft(product_id=product.id, quantity=2, email="ada@example.com"))

    def query(self, sql: str, **values: object) -> list[tuple[object, ...]]:
        """Return the rows that another transaction sees."""
        with self.engine.begin() as connection:
            return [tuple(row) for row in connection.execute(text(sql), values)]

    def open_transactions(self) -> list[tuple[object, ...]]:
        """Return the states of all connections to the shop's database that have a transaction open."""
        return self.query(
            "SELECT state FROM pg_stat_activity"
            " WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )

    def administer(self, *statements: LiteralString) -> None:
        """Run statements on a connection of their own, each in its own transaction."""
        with connect(self.database_url, application_name="storefront tests") as connection:
            for statement in statements:
                connection.execute(statement)

    def written(self) -> tuple[int, int]:
        """Count the products and the jobs."""
        [(products, jobs)] = self.query("SELECT (SELECT count(*) FROM storefront.product), (SELECT count(*) FROM sweephand.job)")
        return int(str(products)), int(str(jobs))


@contextmanager
def open_shop(database_url: str) -> Iterator[Shop]:
    """Wire the shop as app.py does it, on a database that has the engine's tables, with fakes outside of it."""
    migrate(database_url)
    engine = postgres_engine(database_url)
    shop = Shop(database_url=database_url, app=App("storefront"), engine=engine, warehouse=FakeWarehouse(), mailer=FakeMailer())
    register_jobs(
        shop.app,
        new_unit_of_work=shop.new_unit_of_work,
        warehouse=shop.warehouse,
        mailer=shop.mailer,
        scan_interval=timedelta(seconds=60),
        batch_limit=100,
    )
    yield shop
    engine.dispose()

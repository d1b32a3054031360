"""What the UnitOfWork port promises."""

from datetime import UTC

import pytest

from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.unit_of_work import postgres_unit_of_work
from storefront.domain.errors import StorageUnavailableError, UnitOfWorkClosedError
from storefront.domain.order import OrderId
from storefront.domain.product import ProductDraft, ProductId
from tests.storefront.shop import Shop
from tests.support.databases import sever_connections

LAMP = ProductDraft(name="Lamp", description="Gives light", price_cents=1999)
ALTER_DATABASE = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CHANGE', current_database()); END $$"


def test_the_end_of_the_block_commits(shop: Shop) -> None:
    with shop.new_unit_of_work() as uow:
        product = uow.products.add(LAMP)

    with shop.new_unit_of_work() as uow:
        assert uow.products.get(product.id) == product


def test_an_exception_rolls_back(shop: Shop) -> None:
    def add_and_fail() -> None:
        with shop.new_unit_of_work() as uow:
            uow.products.add(LAMP)
            raise LookupError

    with pytest.raises(LookupError):
        add_and_fail()

    assert shop.query("SELECT * FROM storefront.product") == []


def test_repositories_kept_beyond_the_block_refuse_to_work(shop: Shop) -> None:
    with shop.new_unit_of_work() as uow:
        products, orders, jobs = uow.products, uow.orders, uow.jobs

    with pytest.raises(UnitOfWorkClosedError):
        products.add(LAMP)
    with pytest.raises(UnitOfWorkClosedError):
        orders.get(OrderId(7))
    with pytest.raises(UnitOfWorkClosedError):
        jobs.enqueue("publish_product", product_id=7)


def test_times_are_utc_whatever_the_server_prefers(shop: Shop) -> None:
    shop.administer(ALTER_DATABASE.replace("CHANGE", "SET TimeZone = ''Asia/Kathmandu''"))

    product = shop.add_product()

    assert product.created_at.tzinfo is UTC


def test_ids_and_prices_of_64_bits_come_back_exactly(shop: Shop) -> None:
    shop.administer("ALTER TABLE storefront.product ALTER COLUMN id RESTART WITH 9007199254740993")

    with shop.new_unit_of_work() as uow:
        product = uow.products.add(ProductDraft(name="Island", description="", price_cents=2**63 - 1))
        found = uow.products.get(ProductId(9007199254740993))

    assert found == product
    assert found.price_cents == 9223372036854775807


def test_a_restart_of_the_server_costs_no_transaction_that_begins_after_it(shop: Shop) -> None:
    shop.add_product()
    sever_connections(shop.database_url)

    shop.add_product()

    assert shop.query("SELECT count(*) FROM storefront.product") == [(2,)]


def test_a_connection_cut_in_the_block_is_the_ports_error_and_writes_nothing(shop: Shop) -> None:
    def add_around_the_cut() -> None:
        with shop.new_unit_of_work() as uow:
            uow.products.add(LAMP)
            sever_connections(shop.database_url)
            uow.products.add(LAMP)

    with pytest.raises(StorageUnavailableError):
        add_around_the_cut()

    assert shop.query("SELECT * FROM storefront.product") == []


def test_a_database_that_is_not_there_is_the_ports_error(shop: Shop) -> None:
    engine = postgres_engine("postgresql://postgres@127.0.0.1:1/shop")

    with pytest.raises(StorageUnavailableError), postgres_unit_of_work(engine, app=shop.app) as uow:
        uow.products.add(LAMP)


def test_after_a_failover_the_connections_to_the_standby_are_given_up(shop: Shop) -> None:
    shop.administer(ALTER_DATABASE.replace("CHANGE", "SET default_transaction_read_only = on"))
    with pytest.raises(StorageUnavailableError), shop.new_unit_of_work() as uow:
        uow.products.add(LAMP)
    shop.administer(
        "SET default_transaction_read_only = off",
        ALTER_DATABASE.replace("CHANGE", "RESET default_transaction_read_only"),
    )

    shop.add_product()

    assert shop.query("SELECT count(*) FROM storefront.product") == [(1,)]

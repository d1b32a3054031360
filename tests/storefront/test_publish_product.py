"""The publication of a product: once, with no transaction open while the warehouse thinks, and safe to repeat."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from storefront.domain.errors import ProductNotFoundError, WarehouseError
from storefront.domain.product import Product, ProductDraft, ProductId
from storefront.use_cases.create_product import create_product
from storefront.use_cases.get_product import get_product
from storefront.use_cases.publish_product import Publication, publish_product
from sweephand import enqueue
from sweephand.model.outcomes import AttemptOutcome
from sweephand.testing import drain, perform
from tests.storefront.shop import Shop
from tests.storefront.warehouses import FakeWarehouse


def publish(shop: Shop, product_id: ProductId, *, warehouse: FakeWarehouse | None = None) -> Publication:
    return publish_product(product_id, new_unit_of_work=shop.new_unit_of_work, warehouse=warehouse or shop.warehouse)


def stored(shop: Shop, product: Product) -> Product:
    return get_product(product.id, new_unit_of_work=shop.new_unit_of_work)


def test_a_product_is_published_with_what_the_warehouse_says(shop: Shop) -> None:
    product = shop.add_product()

    publication = publish(shop, product.id)

    published = stored(shop, product)
    assert publication == Publication(product.id, was_published_before=False)
    assert published.in_stock is True
    assert published.published_at is not None
    assert product.created_at <= published.published_at <= datetime.now(UTC)


def test_a_sold_out_product_is_published_as_such(shop: Shop) -> None:
    product = shop.add_product()

    publish(shop, product.id, warehouse=FakeWarehouse(sold_out=frozenset({product.id})))

    published = stored(shop, product)
    assert published.in_stock is False
    assert published.is_published


def test_a_second_publication_changes_nothing_and_leaves_the_warehouse_alone(shop: Shop) -> None:
    product = shop.add_product()
    publish(shop, product.id)
    before = stored(shop, product)

    publication = publish(shop, product.id, warehouse=FakeWarehouse(failures=1))

    assert publication == Publication(product.id, was_published_before=True)
    assert stored(shop, product) == before


def test_of_two_publications_at_once_the_first_to_write_wins(shop: Shop) -> None:
    product = shop.add_product()
    both_wait = threading.Barrier(2)
    publications: list[Publication] = []

    def meet() -> None:
        both_wait.wait(timeout=10)

    warehouse = FakeWarehouse(during=meet)

    threads = [
        threading.Thread(target=lambda: publications.append(publish(shop, product.id, warehouse=warehouse))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(publication.was_published_before for publication in publications) == [False, True]


def test_no_transaction_is_open_while_the_warehouse_thinks(shop: Shop) -> None:
    product = shop.add_product()
    seen: list[tuple[object, ...]] = []
    warehouse = FakeWarehouse(during=lambda: seen.extend(shop.open_transactions()))

    publish(shop, product.id, warehouse=warehouse)

    assert seen == []


def test_a_warehouse_without_an_answer_leaves_the_product_for_another_attempt(shop: Shop) -> None:
    product = shop.add_product()
    warehouse = FakeWarehouse(failures=1)

    with pytest.raises(WarehouseError):
        publish(shop, product.id, warehouse=warehouse)
    unpublished = stored(shop, product)
    publish(shop, product.id, warehouse=warehouse)

    assert not unpublished.is_published
    assert stored(shop, product).is_published


def test_a_product_that_does_not_exist_cannot_be_published(shop: Shop) -> None:
    with pytest.raises(ProductNotFoundError, match="there is no product 404"):
        publish(shop, ProductId(404))


def test_a_new_product_is_published_by_its_job(shop: Shop) -> None:
    product = create_product(ProductDraft(name="Lamp", description="", price_cents=1999), new_unit_of_work=shop.new_unit_of_work)

    with shop.engine.begin() as connection:
        report = drain(connection, shop.app)

    assert report.completed == 1
    assert stored(shop, product).is_published


def test_the_job_of_a_deleted_product_cancels_itself(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        attempt = perform(connection, shop.app.jobs["publish_product"], product_id=404)

    assert attempt.outcome is AttemptOutcome.CANCELLED
    assert str(attempt.error) == "there is no product 404"


def test_the_job_fails_with_the_warehouse_and_is_tried_again(shop: Shop) -> None:
    product = shop.add_product()
    shop.warehouse.failures = 1

    with shop.engine.begin() as connection:
        enqueue(connection, shop.app.jobs["publish_product"], product_id=product.id)
        report = drain(connection, shop.app, until=timedelta(minutes=1), on_failure="retry")

    assert [attempt.outcome for attempt in report.attempts] == [AttemptOutcome.RETRIED, AttemptOutcome.COMPLETED]
    assert isinstance(report.errors[0], WarehouseError)
    assert stored(shop, product).is_published

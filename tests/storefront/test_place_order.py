"""An order and the job that confirms it: both or neither, and only of what is for sale."""

import pytest

from storefront.domain.errors import ProductNotForSaleError, ProductNotFoundError, StorageUnavailableError
from storefront.domain.order import OrderDraft
from storefront.domain.product import ProductId
from storefront.use_cases.get_order import get_order
from storefront.use_cases.place_order import place_order
from sweephand.testing import assert_enqueued, assert_not_enqueued
from tests.storefront.shop import Shop

ORDERS = "SELECT count(*) FROM storefront.customer_order"


def draft(product_id: ProductId) -> OrderDraft:
    return OrderDraft(product_id=product_id, quantity=2, email="ada@example.com")


def test_a_new_order_is_unconfirmed_and_has_its_job(shop: Shop) -> None:
    product = shop.add_product_for_sale()

    order = place_order(draft(product.id), new_unit_of_work=shop.new_unit_of_work)

    assert (order.product_id, order.quantity, order.email) == (product.id, 2, "ada@example.com")
    assert order.confirmed_at is None
    assert order.placed_at.utcoffset() is not None
    assert get_order(order.id, new_unit_of_work=shop.new_unit_of_work) == order
    with shop.engine.begin() as connection:
        assert_enqueued(connection, shop.app.jobs["confirm_order"], order_id=order.id)


def test_the_use_case_commits_order_and_job_in_one_transaction(shop: Shop) -> None:
    order = place_order(draft(shop.add_product_for_sale().id), new_unit_of_work=shop.new_unit_of_work)

    transactions = shop.query(
        "SELECT customer_order.xmin = job.xmin FROM storefront.customer_order, sweephand.job WHERE customer_order.id = :id",
        id=order.id,
    )

    assert transactions == [(True,)]


def test_an_exception_after_both_leaves_neither(shop: Shop) -> None:
    product = shop.add_product_for_sale()

    def fail_after_both() -> None:
        with shop.new_unit_of_work() as uow:
            order = uow.orders.add(draft(product.id))
            uow.jobs.enqueue("confirm_order", order_id=order.id)
            raise LookupError

    with pytest.raises(LookupError):
        fail_after_both()

    assert shop.query(ORDERS) == [(0,)]
    with shop.engine.begin() as connection:
        assert_not_enqueued(connection, shop.app.jobs["confirm_order"])


def test_a_product_that_does_not_exist_cannot_be_ordered(shop: Shop) -> None:
    with pytest.raises(ProductNotFoundError, match="there is no product 404"):
        place_order(draft(ProductId(404)), new_unit_of_work=shop.new_unit_of_work)

    assert shop.query(ORDERS) == [(0,)]


def test_a_product_that_is_not_published_cannot_be_ordered(shop: Shop) -> None:
    product = shop.add_product()

    with pytest.raises(ProductNotForSaleError, match=f"product {product.id} is not published yet"):
        place_order(draft(product.id), new_unit_of_work=shop.new_unit_of_work)

    assert shop.query(ORDERS) == [(0,)]


def test_a_product_that_is_sold_out_cannot_be_ordered(shop: Shop) -> None:
    product = shop.add_product_for_sale(in_stock=False)

    with pytest.raises(ProductNotForSaleError, match=f"product {product.id} is sold out"):
        place_order(draft(product.id), new_unit_of_work=shop.new_unit_of_work)

    assert shop.query(ORDERS) == [(0,)]


def test_a_failing_database_does_not_repeat_the_address_in_its_error(shop: Shop) -> None:
    product = shop.add_product_for_sale()
    shop.administer("DROP TABLE storefront.customer_order")

    with pytest.raises(StorageUnavailableError) as failure:
        place_order(draft(product.id), new_unit_of_work=shop.new_unit_of_work)

    assert "INSERT INTO storefront.customer_order" in str(failure.value.__cause__)
    assert "ada@example.com" not in str(failure.value.__cause__)

"""A product and the job that publishes it: both or neither."""

import pytest

from storefront.domain.product import ProductDraft
from storefront.use_cases.create_product import create_product
from sweephand.testing import assert_enqueued, assert_not_enqueued
from tests.storefront.shop import Shop

PRODUCTS = "SELECT count(*) FROM storefront.product"
LAMP = ProductDraft(name="Lamp", description="Gives light", price_cents=1999)


def test_a_new_product_is_unpublished_and_has_its_job(shop: Shop) -> None:
    product = create_product(LAMP, new_unit_of_work=shop.new_unit_of_work)

    assert (product.name, product.description, product.price_cents) == ("Lamp", "Gives light", 1999)
    assert product.in_stock is None
    assert product.published_at is None
    assert product.created_at.utcoffset() is not None
    with shop.engine.begin() as connection:
        assert_enqueued(connection, shop.app.jobs["publish_product"], product_id=product.id)


def test_the_use_case_commits_product_and_job_in_one_transaction(shop: Shop) -> None:
    product = create_product(LAMP, new_unit_of_work=shop.new_unit_of_work)

    transactions = shop.query(
        "SELECT product.xmin = job.xmin FROM storefront.product, sweephand.job WHERE product.id = :id", id=product.id
    )

    assert transactions == [(True,)]


def test_an_exception_after_both_leaves_neither(shop: Shop) -> None:
    def fail_after_both() -> None:
        with shop.new_unit_of_work() as uow:
            product = uow.products.add(LAMP)
            uow.jobs.enqueue("publish_product", product_id=product.id)
            raise LookupError

    with pytest.raises(LookupError):
        fail_after_both()

    assert shop.query(PRODUCTS) == [(0,)]
    with shop.engine.begin() as connection:
        assert_not_enqueued(connection, shop.app.jobs["publish_product"])

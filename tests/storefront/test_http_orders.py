"""Orders over HTTP, through the whole application and a real PostgreSQL."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from structlog.testing import capture_logs

from storefront.domain.order import OrderId
from storefront.use_cases.confirm_order import confirm_order
from tests.storefront.answers import JSON, ORDERS, assert_problem, client_of
from tests.storefront.shop import Shop

ORDER = {"product_id": 1, "quantity": 2, "email": "ada@example.com"}


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(shop.new_unit_of_work) as client:
        yield client


def written(shop: Shop) -> tuple[object, ...]:
    """Count the orders and the jobs."""
    [counts] = shop.query("SELECT (SELECT count(*) FROM storefront.customer_order), (SELECT count(*) FROM sweephand.job)")
    return counts


async def test_a_placed_order_is_answered_unconfirmed_with_its_place(client: httpx.AsyncClient, shop: Shop) -> None:
    product = shop.add_product_for_sale()

    answer = await client.post(ORDERS, json={**ORDER, "product_id": product.id})

    order = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{ORDERS}/{order['id']}"
    assert (order["product_id"], order["quantity"]) == (product.id, 2)
    assert order["placed_at"].endswith("Z")
    assert order["confirmed_at"] is None
    assert written(shop) == (1, 1)


async def test_an_order_is_shown_as_it_is_now(client: httpx.AsyncClient, shop: Shop) -> None:
    placed = (await client.post(ORDERS, json={**ORDER, "product_id": shop.add_product_for_sale().id})).json()
    confirm_order(OrderId(placed["id"]), new_unit_of_work=shop.new_unit_of_work, mailer=shop.mailer)

    answer = await client.get(f"{ORDERS}/{placed['id']}")

    order = answer.json()
    assert answer.status_code == 200
    assert order["confirmed_at"] >= order["placed_at"]


async def test_neither_answers_nor_logs_tell_the_address(client: httpx.AsyncClient, shop: Shop) -> None:
    product = shop.add_product_for_sale()

    with capture_logs() as lines:
        placed = await client.post(ORDERS, json={**ORDER, "product_id": product.id})
        shown = await client.get(placed.headers["Location"])
        refused = await client.post(ORDERS, json={**ORDER, "email": "ada@exam@ple.com"})

    assert [line["event"] for line in lines] == ["order_placed"]
    for text in (placed.text, shown.text, refused.text, repr(lines)):
        assert "ada@" not in text


async def test_an_order_of_a_product_that_does_not_exist_is_a_404(client: httpx.AsyncClient, shop: Shop) -> None:
    answer = await client.post(ORDERS, json={**ORDER, "product_id": 404})

    assert_problem(answer, 404)
    assert answer.json()["detail"] == "there is no product 404"
    assert written(shop) == (0, 0)


async def test_an_order_of_what_is_not_for_sale_is_a_409_that_says_why(client: httpx.AsyncClient, shop: Shop) -> None:
    unpublished = shop.add_product()
    sold_out = shop.add_product_for_sale(in_stock=False)

    answers = [await client.post(ORDERS, json={**ORDER, "product_id": product.id}) for product in (unpublished, sold_out)]

    for answer, reason in zip(answers, ("is not published yet", "is sold out"), strict=True):
        assert_problem(answer, 409)
        assert reason in answer.json()["detail"]
    assert written(shop) == (0, 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("product_id", 0),
        ("product_id", 2**63),
        ("product_id", "1"),
        ("product_id", True),
        ("product_id", None),
        ("quantity", 0),
        ("quantity", 1001),
        ("quantity", 10**1000),
        ("quantity", 1.0),
        ("quantity", "2"),
        ("quantity", None),
        ("email", ""),
        ("email", "ada"),
        ("email", "ada@eve@example.com"),
        ("email", "ada@example.com\r\nBcc: eve@example.com"),
        ("email", "a\0da@example.com"),
        ("email", "ada@\ud800"),
        ("email", "a" * 243 + "@example.com"),
        ("email", ["ada@example.com"]),
        ("email", None),
        ("confirmed_at", "2026-11-30T16:00:00Z"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_written(
    client: httpx.AsyncClient, shop: Shop, field: str, value: object
) -> None:
    product = shop.add_product_for_sale()
    body = json.dumps({**ORDER, "product_id": product.id, field: value})

    answer = await client.post(ORDERS, content=body, headers=JSON)

    assert_problem(answer, 422, field=f"body.{field}")
    assert written(shop) == (0, 0)


@pytest.mark.parametrize("field", ["product_id", "quantity", "email"])
async def test_a_missing_field_is_named(client: httpx.AsyncClient, field: str) -> None:
    answer = await client.post(ORDERS, json={key: value for key, value in ORDER.items() if key != field})

    assert_problem(answer, 422, field=f"body.{field}")


async def test_another_content_type_is_refused(client: httpx.AsyncClient, shop: Shop) -> None:
    answer = await client.post(ORDERS, content=json.dumps(ORDER), headers={"Content-Type": "text/plain"})

    assert_problem(answer, 415)
    assert written(shop) == (0, 0)


@pytest.mark.parametrize(
    ("order_id", "status"), [("1", 404), ("9223372036854775807", 404), ("0", 422), ("9223372036854775808", 422), ("x", 422)]
)
async def test_an_order_that_cannot_be_found_is_a_problem(client: httpx.AsyncClient, order_id: str, status: int) -> None:
    answer = await client.get(f"{ORDERS}/{order_id}")

    assert_problem(answer, status, field="path.order_id" if status == 422 else None)

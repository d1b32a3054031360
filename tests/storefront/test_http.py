"""Products over HTTP, through the whole application and a real PostgreSQL."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.unit_of_work import postgres_unit_of_work
from storefront.domain.product import ProductId
from storefront.use_cases.publish_product import publish_product
from tests.storefront.answers import LAMP, PRODUCTS, assert_problem, client_of
from tests.storefront.shop import Shop


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(shop.new_unit_of_work) as client:
        yield client


async def test_a_created_product_is_answered_unpublished_with_its_place(client: httpx.AsyncClient, shop: Shop) -> None:
    answer = await client.post(PRODUCTS, json=LAMP)

    product = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{PRODUCTS}/{product['id']}"
    assert {key: product[key] for key in LAMP} == LAMP
    assert product["in_stock"] is None
    assert product["published_at"] is None
    assert product["created_at"].endswith("Z")
    assert shop.written() == (1, 1)


async def test_a_product_is_shown_as_it_is_now(client: httpx.AsyncClient, shop: Shop) -> None:
    created = (await client.post(PRODUCTS, json=LAMP)).json()
    publish_product(ProductId(created["id"]), new_unit_of_work=shop.new_unit_of_work, warehouse=shop.warehouse)

    answer = await client.get(f"{PRODUCTS}/{created['id']}")

    product = answer.json()
    assert answer.status_code == 200
    assert product["in_stock"] is True
    assert product["published_at"] >= product["created_at"]


async def test_ids_and_prices_beyond_53_bits_arrive_exactly(client: httpx.AsyncClient, shop: Shop) -> None:
    shop.administer("ALTER TABLE storefront.product ALTER COLUMN id RESTART WITH 9007199254740993")

    created = await client.post(PRODUCTS, json={**LAMP, "price_cents": 9223372036854775807})
    shown = await client.get(created.headers["Location"])

    assert created.headers["Location"] == f"{PRODUCTS}/9007199254740993"
    assert '"id":9007199254740993' in shown.text
    assert '"price_cents":9223372036854775807' in shown.text
    assert shop.query("SELECT args FROM sweephand.job") == [({"product_id": 9007199254740993},)]


async def test_health_needs_no_database(client: httpx.AsyncClient) -> None:
    answer = await client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_content_type_with_a_charset_is_accepted(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}

    answer = await client.post(PRODUCTS, content=json.dumps(LAMP), headers=headers)

    assert answer.status_code == 201


async def test_a_long_description_under_the_limit_is_stored(client: httpx.AsyncClient) -> None:
    answer = await client.post(PRODUCTS, json={**LAMP, "description": "x" * 1_000_000})

    assert answer.status_code == 201
    assert len(answer.json()["description"]) == 1_000_000


async def test_a_database_that_is_gone_is_a_503_that_tells_nothing_of_it(shop: Shop) -> None:
    engine = postgres_engine("postgresql://postgres:s3cret@127.0.0.1:1/shop")

    async with client_of(lambda: postgres_unit_of_work(engine, app=shop.app)) as client:
        answer = await client.post(PRODUCTS, json=LAMP)

    assert_problem(answer, 503)
    assert answer.headers["Retry-After"] == "1"
    assert "127.0.0.1" not in answer.text
    assert "s3cret" not in answer.text

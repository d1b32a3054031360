"""Products over HTTP, through the whole application and a real PostgreSQL."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storefront.adapters.http.app import http_app
from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.unit_of_work import postgres_unit_of_work
from storefront.domain.product import ProductId
from storefront.use_cases.publish_product import publish_product
from tests.storefront.conftest import Shop

LAMP = {"name": "Lamp", "description": "Gives light", "price_cents": 1999}
PRODUCTS = "/api/v1/products"
PROBLEM_KEYS = {"type", "title", "status", "detail", "instance", "errors"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(http_app(shop.new_unit_of_work))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        yield client


def assert_problem(answer: httpx.Response, status: int, *, field: str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == PROBLEM_KEYS
    assert problem["status"] == status
    assert problem["detail"]
    if field is not None:
        assert field in [error["field"] for error in problem["errors"]]


def written(shop: Shop) -> list[tuple[object, ...]]:
    return shop.query("SELECT (SELECT count(*) FROM storefront.product), (SELECT count(*) FROM sweephand.job)")


async def test_a_created_product_is_answered_unpublished_with_its_place(client: httpx.AsyncClient, shop: Shop) -> None:
    answer = await client.post(PRODUCTS, json=LAMP)

    product = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{PRODUCTS}/{product['id']}"
    assert {key: product[key] for key in LAMP} == LAMP
    assert product["in_stock"] is None
    assert product["published_at"] is None
    assert product["created_at"].endswith("Z")
    assert written(shop) == [(1, 1)]


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", " \t\n"),
        ("name", "\u2003"),
        ("name", "n" * 201),
        ("name", "a\0b"),
        ("name", "\ud800"),
        ("name", None),
        ("name", 7),
        ("name", ["Lamp"]),
        ("description", None),
        ("description", "\0"),
        ("description", "\udfff"),
        ("description", {"en": "Lamp"}),
        ("price_cents", -1),
        ("price_cents", 2**63),
        ("price_cents", 10**1000),
        ("price_cents", 1.0),
        ("price_cents", 19.99),
        ("price_cents", float("nan")),
        ("price_cents", float("inf")),
        ("price_cents", True),
        ("price_cents", "1999"),
        ("price_cents", None),
        ("published_at", "2026-11-30T16:00:00Z"),
        ("id", 1),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_written(
    client: httpx.AsyncClient, shop: Shop, field: str, value: object
) -> None:
    body = json.dumps({**LAMP, field: value})

    answer = await client.post(PRODUCTS, content=body, headers=JSON)

    assert_problem(answer, 422, field=f"body.{field}")
    assert written(shop) == [(0, 0)]


@pytest.mark.parametrize("field", ["name", "description", "price_cents"])
async def test_a_missing_field_is_named(client: httpx.AsyncClient, field: str) -> None:
    answer = await client.post(PRODUCTS, json={key: value for key, value in LAMP.items() if key != field})

    assert_problem(answer, 422, field=f"body.{field}")


async def test_all_wrong_fields_are_named_at_once(client: httpx.AsyncClient) -> None:
    answer = await client.post(PRODUCTS, json={"name": "", "description": 1, "price_cents": -1})

    assert [error["field"] for error in answer.json()["errors"]] == [
        "body.name",
        "body.description",
        "body.price_cents",
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"[]", 422),
        (b'"Lamp"', 422),
        (b"{", 400),
        (b"{'name': 'Lamp'}", 400),
        (b"\xff\xfe", 400),
        (b'{"name": "\xc3\x28"}', 400),
        (b'{"price_cents": ' + b"9" * 5000 + b"}", 400),
        (b"[" * 100_000, 400),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(client: httpx.AsyncClient, shop: Shop, body: bytes, status: int) -> None:
    answer = await client.post(PRODUCTS, content=body, headers=JSON)

    assert_problem(answer, status)
    assert written(shop) == [(0, 0)]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_another_content_type_is_refused(client: httpx.AsyncClient, shop: Shop, content_type: str) -> None:
    answer = await client.post(PRODUCTS, content=json.dumps(LAMP), headers={"Content-Type": content_type})

    assert_problem(answer, 415)
    assert written(shop) == [(0, 0)]


async def test_a_content_type_with_a_charset_is_accepted(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}

    answer = await client.post(PRODUCTS, content=json.dumps(LAMP), headers=headers)

    assert answer.status_code == 201


async def test_a_body_over_one_megabyte_is_refused(client: httpx.AsyncClient, shop: Shop) -> None:
    answer = await client.post(PRODUCTS, json={**LAMP, "description": "x" * 1_048_576})

    assert_problem(answer, 413)
    assert written(shop) == [(0, 0)]


async def test_a_long_description_under_the_limit_is_stored(client: httpx.AsyncClient) -> None:
    answer = await client.post(PRODUCTS, json={**LAMP, "description": "x" * 1_000_000})

    assert answer.status_code == 201
    assert len(answer.json()["description"]) == 1_000_000


@pytest.mark.parametrize(
    ("product_id", "status"),
    [("1", 404), ("9223372036854775807", 404), ("0", 422), ("-1", 422), ("9223372036854775808", 422), ("lamp", 422)],
)
async def test_a_product_that_cannot_be_found_is_a_problem(client: httpx.AsyncClient, product_id: str, status: int) -> None:
    answer = await client.get(f"{PRODUCTS}/{product_id}")

    assert_problem(answer, status, field="path.product_id" if status == 422 else None)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("DELETE", f"{PRODUCTS}/1", 405)])
async def test_routes_that_do_not_exist_are_problems(client: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    assert_problem(await client.request(method, path), status)


async def test_a_database_that_is_gone_is_a_503_that_tells_nothing_of_it(shop: Shop) -> None:
    engine = postgres_engine("postgresql://postgres:s3cret@127.0.0.1:1/shop")
    transport = httpx.ASGITransport(http_app(lambda: postgres_unit_of_work(engine, app=shop.app)))

    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        answer = await client.post(PRODUCTS, json=LAMP)

    assert_problem(answer, 503)
    assert answer.headers["Retry-After"] == "1"
    assert "127.0.0.1" not in answer.text
    assert "s3cret" not in answer.text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=8), values, max_size=3),
    max_leaves=8,
)
bodies = st.one_of(
    st.binary(max_size=200),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.text(st.characters(), max_size=220) | json_values,
            "description": st.text(st.characters()) | json_values,
            "price_cents": st.integers(-(2**70), 2**70) | json_values,
        },
    ).map(lambda value: json.dumps(value).encode()),
)


@given(body=bodies)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_sent_is_either_written_whole_or_refused(client: httpx.AsyncClient, shop: Shop, body: bytes) -> None:
    [(products_before, jobs_before)] = written(shop)

    answer = await client.post(PRODUCTS, content=body, headers=JSON)

    added = 1 if answer.status_code == 201 else 0
    assert written(shop) == [(int(str(products_before)) + added, int(str(jobs_before)) + added)]
    if added:
        sent, product = json.loads(body), answer.json()
        assert {key: product[key] for key in LAMP} == sent
    else:
        assert answer.status_code in {400, 422}
        assert_problem(answer, answer.status_code)

"""What the API refuses: each with its field or its reason, and nothing written."""

import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.storefront.answers import JSON, LAMP, PRODUCTS, assert_problem, client_of
from tests.storefront.shop import Shop, open_shop
from tests.support.databases import Databases


@pytest.fixture(scope="module")
def refusing_shop(databases: Databases) -> Iterator[Shop]:
    """One shop for all of these tests: they write nothing, and that is checked."""
    from sweephand.postgres.migrate import migrate

    database_url = databases.create_clone(migrate)
    with open_shop(database_url) as shop:
        yield shop
    databases.drop(database_url)


@pytest.fixture
async def client(refusing_shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(refusing_shop.new_unit_of_work) as client:
        yield client


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
    client: httpx.AsyncClient, refusing_shop: Shop, field: str, value: object
) -> None:
    body = json.dumps({**LAMP, field: value})

    answer = await client.post(PRODUCTS, content=body, headers=JSON)

    assert_problem(answer, 422, field=f"body.{field}")
    assert refusing_shop.written() == (0, 0)


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
async def test_a_body_that_is_no_json_object_is_refused(
    client: httpx.AsyncClient, refusing_shop: Shop, body: bytes, status: int
) -> None:
    answer = await client.post(PRODUCTS, content=body, headers=JSON)

    assert_problem(answer, status)
    assert refusing_shop.written() == (0, 0)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_another_content_type_is_refused(client: httpx.AsyncClient, refusing_shop: Shop, content_type: str) -> None:
    answer = await client.post(PRODUCTS, content=json.dumps(LAMP), headers={"Content-Type": content_type})

    assert_problem(answer, 415)
    assert refusing_shop.written() == (0, 0)


async def test_a_body_over_one_megabyte_is_refused(client: httpx.AsyncClient, refusing_shop: Shop) -> None:
    answer = await client.post(PRODUCTS, json={**LAMP, "description": "x" * 1_048_576})

    assert_problem(answer, 413)
    assert refusing_shop.written() == (0, 0)


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


@pytest.fixture
async def accepting_client(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(shop.new_unit_of_work) as client:
        yield client


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
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_sent_is_either_written_whole_or_refused(
    accepting_client: httpx.AsyncClient, shop: Shop, body: bytes
) -> None:
    products_before, jobs_before = shop.written()

    answer = await accepting_client.post(PRODUCTS, content=body, headers=JSON)

    added = 1 if answer.status_code == 201 else 0
    assert shop.written() == (products_before + added, jobs_before + added)
    if added:
        sent, product = json.loads(body), answer.json()
        assert {key: product[key] for key in LAMP} == sent
    else:
        assert answer.status_code in {400, 422}
        assert_problem(answer, answer.status_code)

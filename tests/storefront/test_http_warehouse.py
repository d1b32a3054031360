"""What the shop says to the company's warehouse, and what it makes of bad answers."""

import threading
from collections.abc import Iterator

import httpx
import pytest

from storefront.adapters.warehouse.http import HttpWarehouse
from storefront.domain.errors import WarehouseError
from storefront.domain.product import ProductId
from tests.storefront.warehouses import WarehouseServer, running_warehouse_server


@pytest.fixture
def server() -> Iterator[WarehouseServer]:
    with running_warehouse_server() as server:
        yield server


@pytest.fixture
def warehouse(server: WarehouseServer) -> Iterator[HttpWarehouse]:
    with httpx.Client(base_url=server.url, timeout=5) as client:
        yield HttpWarehouse(client)


def test_every_attempt_at_a_product_has_the_same_key(server: WarehouseServer, warehouse: HttpWarehouse) -> None:
    for product_id in (7, 7, 8):
        warehouse.reserve_stock(ProductId(product_id))

    assert server.keys == ["publish-product-7", "publish-product-7", "publish-product-8"]
    assert server.reservations == {"publish-product-7": 7, "publish-product-8": 8}


@pytest.mark.parametrize("status", [302, 404, 409, 429, 500, 503])
def test_a_status_that_is_no_success_is_no_answer(server: WarehouseServer, warehouse: HttpWarehouse, status: int) -> None:
    server.status = status

    with pytest.raises(WarehouseError, match=str(status)):
        warehouse.reserve_stock(ProductId(7))


@pytest.mark.parametrize(
    "body", [b"", b"sorry", b"\xff", b"[]", b"null", b"{}", b'{"in_stock": null}', b'{"in_stock": 1}', b'{"in_stock": "yes"}']
)
def test_an_answer_that_is_not_understood_is_no_answer(server: WarehouseServer, warehouse: HttpWarehouse, body: bytes) -> None:
    server.body = body

    with pytest.raises(WarehouseError, match="product 7"):
        warehouse.reserve_stock(ProductId(7))


def test_a_silent_warehouse_is_waited_for_no_longer_than_the_timeout(server: WarehouseServer) -> None:
    server.hang = threading.Event()

    with httpx.Client(base_url=server.url, timeout=0.1) as client, pytest.raises(WarehouseError, match="timed out"):
        HttpWarehouse(client).reserve_stock(ProductId(7))


def test_a_warehouse_that_is_not_there_raises_the_same_error() -> None:
    with httpx.Client(base_url="http://127.0.0.1:1") as client, pytest.raises(WarehouseError, match="product 7"):
        HttpWarehouse(client).reserve_stock(ProductId(7))

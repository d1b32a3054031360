"""What the Warehouse port promises, checked on every warehouse, the tests' fake included."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from storefront.adapters.warehouse.http import HttpWarehouse
from storefront.adapters.warehouse.simulated import SimulatedWarehouse
from storefront.domain.errors import WarehouseError
from storefront.domain.product import ProductId
from storefront.ports import Warehouse
from tests.storefront.warehouses import FakeWarehouse, running_warehouse_server

IN_STOCK = ProductId(2**53 + 1)
SOLD_OUT = ProductId(10)


@dataclass(frozen=True, slots=True)
class Warehouses:
    """One that works and knows product 10 as sold out, and one of the same kind that fails."""

    working: Warehouse
    failing: Warehouse


@pytest.fixture(params=["http", "simulated", "fake"])
def warehouses(request: pytest.FixtureRequest) -> Iterator[Warehouses]:
    match request.param:
        case "fake":
            yield Warehouses(FakeWarehouse(sold_out=frozenset({SOLD_OUT})), FakeWarehouse(failures=99))
        case "simulated":
            yield Warehouses(_simulated(failure_rate=0), _simulated(failure_rate=1))
        case _:
            with running_warehouse_server() as good, running_warehouse_server() as bad:
                good.sold_out = frozenset({SOLD_OUT})
                bad.status = 503
                with httpx.Client(base_url=good.url) as to_good, httpx.Client(base_url=bad.url) as to_bad:
                    yield Warehouses(HttpWarehouse(to_good), HttpWarehouse(to_bad))


def _simulated(*, failure_rate: float) -> SimulatedWarehouse:
    return SimulatedWarehouse(min_delay_seconds=0, max_delay_seconds=0, failure_rate=failure_rate)


def test_stock_is_reserved_where_there_is_some(warehouses: Warehouses) -> None:
    assert warehouses.working.reserve_stock(IN_STOCK) is True


def test_a_sold_out_product_is_no_error(warehouses: Warehouses) -> None:
    assert warehouses.working.reserve_stock(SOLD_OUT) is False


def test_asking_again_gives_the_same_answer(warehouses: Warehouses) -> None:
    answers = [warehouses.working.reserve_stock(product_id) for product_id in (IN_STOCK, SOLD_OUT) * 3]

    assert answers == [True, False] * 3


def test_a_warehouse_that_fails_raises_its_one_error(warehouses: Warehouses) -> None:
    with pytest.raises(WarehouseError):
        warehouses.failing.reserve_stock(IN_STOCK)


def test_threads_may_ask_at_once(warehouses: Warehouses) -> None:
    barrier = threading.Barrier(8)
    answers: list[bool] = []

    def ask() -> None:
        barrier.wait()
        answers.append(warehouses.working.reserve_stock(IN_STOCK))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 8

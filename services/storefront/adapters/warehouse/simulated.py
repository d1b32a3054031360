"""A warehouse that thinks for a while, fails now and then, and needs no other system."""

import random
import time

from storefront.domain.errors import WarehouseError
from storefront.domain.product import ProductId

SLICE_SECONDS = 0.1


class SimulatedWarehouse:
    """Fulfil the Warehouse port after `min_delay_seconds` to `max_delay_seconds`; every tenth product is sold out.

    `failure_rate` is the share of calls that raise WarehouseError, from 0 to 1.
    """

    def __init__(self, *, min_delay_seconds: float, max_delay_seconds: float, failure_rate: float) -> None:
        self._min_delay_seconds = min_delay_seconds
        self._max_delay_seconds = max_delay_seconds
        self._failure_rate = failure_rate

    def reserve_stock(self, product_id: ProductId) -> bool:
        """Wait, then answer or fail. The answer depends on the id alone, so asking again changes nothing."""
        _wait(random.uniform(self._min_delay_seconds, self._max_delay_seconds))  # noqa: S311 - no secret
        if random.random() < self._failure_rate:  # noqa: S311 - no secret
            raise WarehouseError(f"the simulated warehouse gave no answer for product {product_id}")
        return product_id % 10 != 0


def _wait(seconds: float) -> None:
    """Sleep in slices: the time limit and a shutdown interrupt Python code, but not one long sleep inside C."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, SLICE_SECONDS))  # noqa: TID251 - being slow is its purpose

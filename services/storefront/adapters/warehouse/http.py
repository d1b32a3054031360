"""The company's warehouse, over HTTP."""

import httpx

from storefront.domain.errors import WarehouseError
from storefront.domain.product import ProductId


class HttpWarehouse:
    """Fulfil the Warehouse port with `POST /reservations` at `client`'s base URL. Threads may share one.

    Every attempt at a product has the same Idempotency-Key: by it the warehouse tells a repetition from an order.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def reserve_stock(self, product_id: ProductId) -> bool:
        """Send the reservation, and read `in_stock` from the answer."""
        try:
            response = self._client.post(
                "/reservations",
                json={"product_id": product_id},
                headers={"Idempotency-Key": f"publish-product-{product_id}"},
            )
            body = response.raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise WarehouseError(f"the warehouse gave no answer for product {product_id}: {error}") from error
        match body:
            case {"in_stock": bool(in_stock)}:
                return in_stock
            case _:
                raise WarehouseError(f"the warehouse answered product {product_id} without in_stock of true or false")

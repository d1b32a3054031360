"""Put a product before the customers."""

from dataclasses import dataclass

from storefront.domain.product import ProductId
from storefront.ports import NewUnitOfWork, Warehouse


@dataclass(frozen=True, slots=True)
class Publication:
    """Report what came of it. `was_published_before`: another attempt had done it, and this one changed nothing."""

    product_id: ProductId
    was_published_before: bool


def publish_product(product_id: ProductId, *, new_unit_of_work: NewUnitOfWork, warehouse: Warehouse) -> Publication:
    """Reserve stock for the product at the warehouse, then publish it.

    Safe to repeat and to run twice at once: the warehouse reserves once, and only an unpublished product is changed.
    No transaction is open while the warehouse thinks, since one of seconds would hold locks and keep vacuum waiting.

    Raises:
        ProductNotFoundError: there is none of this id.
        WarehouseError: the warehouse gave no answer; nothing was changed, try again later.
    """
    with new_unit_of_work() as uow:
        product = uow.products.get(product_id)
    if product.is_published:
        return Publication(product_id, was_published_before=True)
    in_stock = warehouse.reserve_stock(product_id)
    with new_unit_of_work() as uow:
        is_first = uow.products.publish(product_id, in_stock=in_stock)
    return Publication(product_id, was_published_before=not is_first)

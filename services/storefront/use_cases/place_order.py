"""Take an order from a customer."""

from storefront.domain.errors import ProductNotForSaleError
from storefront.domain.order import Order, OrderDraft
from storefront.ports import NewUnitOfWork


def place_order(draft: OrderDraft, *, new_unit_of_work: NewUnitOfWork) -> Order:
    """Store the order together with the job that will confirm it by mail, in one transaction: both or neither.

    Raises:
        ProductNotFoundError: there is no product of this id.
        ProductNotForSaleError: the product is not published yet, or is sold out.
    """
    with new_unit_of_work() as uow:
        product = uow.products.get(draft.product_id)
        if not (product.is_published and product.in_stock):
            raise ProductNotForSaleError(product.id, is_published=product.is_published)
        order = uow.orders.add(draft)
        uow.jobs.enqueue("confirm_order", order_id=order.id)
    return order

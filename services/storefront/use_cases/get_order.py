"""Look at an order."""

from storefront.domain.order import Order, OrderId
from storefront.ports import NewUnitOfWork


def get_order(order_id: OrderId, *, new_unit_of_work: NewUnitOfWork) -> Order:
    """Return the order, confirmed or not.

    Raises:
        OrderNotFoundError: there is none of this id.
    """
    with new_unit_of_work() as uow:
        return uow.orders.get(order_id)

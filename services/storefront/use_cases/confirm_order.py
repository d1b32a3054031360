"""Tell a customer that an order was placed."""

from dataclasses import dataclass

from storefront.domain.order import OrderId
from storefront.ports import Mailer, NewUnitOfWork


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Report what came of it. `was_confirmed_before`: another attempt had confirmed it, and this one changed nothing."""

    order_id: OrderId
    was_confirmed_before: bool


def confirm_order(order_id: OrderId, *, new_unit_of_work: NewUnitOfWork, mailer: Mailer) -> Confirmation:
    """Mail the confirmation to the customer, then confirm the order.

    Safe to repeat and to run twice at once: an order is confirmed once, and a mail that goes out twice, because the process died
    between the mail and the commit or because two ran at once, has the same Message-ID. Confirmed first and mailed afterwards,
    an order could stay without its mail for ever. No transaction is open while the mail is under way.

    Raises:
        OrderNotFoundError: there is none of this id.
        MailError: the mail was not accepted; nothing was changed, try again later.
    """
    with new_unit_of_work() as uow:
        order = uow.orders.get(order_id)
        product = uow.products.get(order.product_id)
    if order.is_confirmed:
        return Confirmation(order_id, was_confirmed_before=True)
    mailer.send_confirmation(order, product=product)
    with new_unit_of_work() as uow:
        is_first = uow.orders.confirm(order_id)
    return Confirmation(order_id, was_confirmed_before=not is_first)

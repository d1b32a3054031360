"""A mailer that needs no mail server: it logs what it would have sent."""

import structlog

from storefront.domain.order import Order
from storefront.domain.product import Product


class SimulatedMailer:
    """Fulfil the Mailer port with a line in the log; nobody gets a mail."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()

    def send_confirmation(self, order: Order, *, product: Product) -> None:
        """Log the ids. Logs are kept and read where the address must not be."""
        self._log.info("mail_simulated", order_id=order.id, product_id=product.id)

"""Mails over SMTP, as any mail server takes them."""

import smtplib
from email.message import EmailMessage
from email.utils import parseaddr

from storefront.domain.errors import MailError
from storefront.domain.order import Order
from storefront.domain.product import Product


class SmtpMailer:
    """Fulfil the Mailer port with the mail server at `server`, which is `host:port`, in a connection of its own for each mail.

    `sender` is the address that mails come from; its domain is also that of their Message-IDs. At each step the server is waited
    for no longer than `timeout_seconds`.
    """

    def __init__(self, server: str, *, sender: str, timeout_seconds: float = 15) -> None:
        self._server = server
        self._sender = sender
        self._timeout_seconds = timeout_seconds

    def send_confirmation(self, order: Order, *, product: Product) -> None:
        """Send the mail, and return once the server has taken it on."""
        message = self._confirmation(order, product=product)
        try:
            with smtplib.SMTP(self._server, timeout=self._timeout_seconds) as connection:
                connection.send_message(message, from_addr=self._sender, to_addrs=[order.email])
        except OSError as error:  # smtplib.SMTPException is one
            reason = _words(error)
        else:
            return
        # Outside of the except block: smtplib's error repeats the address, and a chained traceback would tell it.
        raise MailError(f"the confirmation of order {order.id} was not sent: {reason}")

    def _confirmation(self, order: Order, *, product: Product) -> EmailMessage:
        """Compose the mail: the same at every attempt, its Message-ID and its date included."""
        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = _recipient(order)
        message["Subject"] = f"Your order {order.id}"
        message["Date"] = order.placed_at
        message["Message-ID"] = f"<order-{order.id}@{self._sender.rpartition('@')[2]}>"
        # The name stands in the body, where a line break in it does no harm; quoted-printable goes through every server.
        message.set_content(f"Thank you for your order of {order.quantity} × {product.name}.\n", cte="quoted-printable")
        return message


def _recipient(order: Order) -> str:
    """Return the address, if mail programs read it as the one that it is: they would take `eve,ada@example.com` for two.

    Raises:
        MailError: it is an address for the shop, but none for mails.
    """
    if parseaddr(order.email) != ("", order.email):
        raise MailError(f"the confirmation of order {order.id} was not sent: no mail can be sent to its address")
    return order.email


def _words(error: OSError) -> str:
    """Return the error in words without the address, which what a server answers may repeat."""
    match error:
        case smtplib.SMTPRecipientsRefused(recipients=recipients):
            return f"the mail server refused the recipient with {', '.join(str(code) for code, _ in recipients.values())}"
        case smtplib.SMTPResponseException(smtp_code=code):
            return f"the mail server answered {code}"
        case _:
            return f"{type(error).__name__}: {error}"

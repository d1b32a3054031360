"""Mailers for tests, and what they mail: a fake, and a real SMTP server for the shop's own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY

from aiosmtpd.smtp import SMTP, Envelope, Session

from storefront.domain.errors import MailError
from storefront.domain.order import Order, OrderId
from storefront.domain.product import Product, ProductId
from tests.storefront.warehouses import nothing

PLACED_AT = datetime(2026, 11, 30, 16, 0, tzinfo=UTC)
LAMP = Product(
    id=ProductId(3),
    name="Lamp",
    description="Gives light",
    price_cents=1999,
    in_stock=True,
    created_at=PLACED_AT,
    published_at=PLACED_AT,
)
ORDER = Order(id=OrderId(7), product_id=LAMP.id, quantity=2, email="ada@example.com", placed_at=PLACED_AT, confirmed_at=None)


@dataclass(slots=True, kw_only=True)
class FakeMailer:
    """Sends at once. `during` runs while the shop waits; the first `failures` calls fail."""

    failures: int = 0
    during: Callable[[], None] = nothing
    sent: list[OrderId] = field(default_factory=list)

    def send_confirmation(self, order: Order, *, product: Product) -> None:
        assert product.id == order.product_id
        self.during()
        if self.failures > 0:
            self.failures -= 1
            raise MailError("the fake mailer was told to fail")
        self.sent.append(order.id)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the server took on, from whom and for whom."""

    sender: str | None
    recipients: list[str]
    mail: EmailMessage


@dataclass(slots=True, kw_only=True)
class MailServer:
    """What a test says of the server's behaviour, and what the server got. `answers` are those to a command, instead of 250."""

    address: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)

    async def handle_MAIL(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        envelope.mail_from = address
        return self.answers.get("MAIL", "250 OK")

    async def handle_RCPT(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        envelope.rcpt_tos.append(address)
        return self.answers.get("RCPT", "250 OK")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd names it
        del server, session
        answer = self.answers.get("DATA", "250 OK")
        if answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            mail = message_from_bytes(envelope.content, EmailMessage, policy=SMTP_POLICY)
            self.deliveries.append(Delivery(envelope.mail_from, envelope.rcpt_tos, mail))
        return answer


@contextmanager
def running_mail_server(*, takes_utf8: bool = False) -> Iterator[MailServer]:
    """Serve SMTP on a free port of this machine for the block. `takes_utf8`: addresses may have letters beyond ASCII."""
    behaviour = MailServer()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        listening = await loop.create_server(
            lambda: SMTP(behaviour, hostname="mail.example", enable_SMTPUTF8=takes_utf8, loop=loop), "127.0.0.1", 0
        )
        behaviour.address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        started.set_result((loop, ended))
        await ended.wait()
        listening.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, ended = started.result(timeout=30)
    try:
        yield behaviour
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()

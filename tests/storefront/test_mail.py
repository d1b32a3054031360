"""What the shop says to a mail server, and what it makes of refusals; and what it logs without a mail server."""

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from storefront.adapters.mail.simulated import SimulatedMailer
from storefront.adapters.mail.smtp import SmtpMailer
from storefront.domain.errors import InvalidFieldError, MailError
from storefront.domain.order import OrderDraft
from tests.storefront.mailers import LAMP, ORDER, MailServer, running_mail_server

SENDER = "orders@shop.example"


@pytest.fixture
def server() -> Iterator[MailServer]:
    with running_mail_server() as server:
        yield server


def test_a_mail_tells_the_customer_what_was_ordered(server: MailServer) -> None:
    SmtpMailer(server.address, sender=SENDER).send_confirmation(ORDER, product=LAMP)

    [delivery] = server.deliveries
    assert (delivery.sender, delivery.recipients) == (SENDER, ["ada@example.com"])
    assert {name: delivery.mail[name] for name in ("From", "To", "Subject", "Date", "Message-ID")} == {
        "From": "orders@shop.example",
        "To": "ada@example.com",
        "Subject": "Your order 7",
        "Date": "Mon, 30 Nov 2026 16:00:00 +0000",
        "Message-ID": "<order-7@shop.example>",
    }
    assert delivery.mail.get_content() == "Thank you for your order of 2 × Lamp.\r\n"


@pytest.mark.parametrize("name", ["Lampe à l'huile 🪔", "Lamp\r\nBcc: eve@example.com", ".\n", "l" * 200])
def test_a_products_name_is_text_whatever_is_in_it(server: MailServer, name: str) -> None:
    SmtpMailer(server.address, sender=SENDER).send_confirmation(ORDER, product=replace(LAMP, name=name))

    [delivery] = server.deliveries
    assert delivery.recipients == ["ada@example.com"]
    assert delivery.mail["Bcc"] is None
    assert " ".join(delivery.mail.get_content().split()) == " ".join(f"Thank you for your order of 2 × {name}.".split())


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("code", [451, 550])
def test_a_refusal_is_told_by_its_code_and_without_the_address(server: MailServer, command: str, code: int) -> None:
    server.answers[command] = f"{code} ada@example.com is not welcome"

    with pytest.raises(MailError, match=f"the confirmation of order 7 was not sent: .*{code}") as refusal:
        SmtpMailer(server.address, sender=SENDER).send_confirmation(ORDER, product=LAMP)

    assert "ada" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
    assert server.deliveries == []


def test_a_mail_server_that_is_not_there_raises_the_same_error() -> None:
    with pytest.raises(MailError, match="order 7 was not sent: ConnectionRefusedError"):
        SmtpMailer("127.0.0.1:1", sender=SENDER).send_confirmation(ORDER, product=LAMP)


def test_a_silent_mail_server_is_waited_for_no_longer_than_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mailer = SmtpMailer(f"127.0.0.1:{silent.getsockname()[1]}", sender=SENDER, timeout_seconds=0.1)

        with pytest.raises(MailError, match="timed out"):
            mailer.send_confirmation(ORDER, product=LAMP)


@pytest.mark.parametrize("email", ["eve,ada@example.com", "<ada@example.com>", "ada@example.com,", "ada;eve@example.com"])
def test_an_address_that_a_header_would_take_for_more_than_one_gets_no_mail(server: MailServer, email: str) -> None:
    with pytest.raises(MailError, match="no mail can be sent to its address") as refusal:
        SmtpMailer(server.address, sender=SENDER).send_confirmation(replace(ORDER, email=email), product=LAMP)

    assert email not in str(refusal.value)
    assert refusal.value.__context__ is None
    assert server.deliveries == []


def test_an_address_beyond_ascii_gets_its_mail_from_a_server_that_knows_such() -> None:
    order = replace(ORDER, email="björn@bücher.example")

    with running_mail_server(takes_utf8=True) as server:
        SmtpMailer(server.address, sender=SENDER).send_confirmation(order, product=LAMP)

    assert server.deliveries[0].recipients == ["björn@bücher.example"]


def test_an_address_beyond_ascii_is_a_failure_at_a_server_that_knows_none(server: MailServer) -> None:
    with pytest.raises(MailError, match="SMTPUTF8"):
        SmtpMailer(server.address, sender=SENDER).send_confirmation(replace(ORDER, email="björn@example.com"), product=LAMP)


def unquoted(email: str) -> str:
    """Return the address without the quotes and backslashes in which the server may write it anew."""
    return email.replace('"', "").replace("\\", "")


@pytest.mark.parametrize("takes_utf8", [False, True])
def test_whatever_address_the_shop_takes_gets_its_mail_or_is_the_ports_error(*, takes_utf8: bool) -> None:
    with running_mail_server(takes_utf8=takes_utf8) as server:
        mailer = SmtpMailer(server.address, sender=SENDER)

        @given(email=st.from_regex(r"[!-~]{1,8}@[!-~]{1,8}", fullmatch=True) | st.text(max_size=8).map(lambda text: f"a{text}@b"))
        @settings(max_examples=60)
        def check(email: str) -> None:
            try:
                OrderDraft(product_id=LAMP.id, quantity=1, email=email)
            except InvalidFieldError:
                return
            server.deliveries.clear()
            try:
                mailer.send_confirmation(replace(ORDER, email=email), product=LAMP)
            except MailError:
                return
            [delivery] = server.deliveries
            assert [unquoted(recipient) for recipient in delivery.recipients] == [unquoted(email)]

        check()


def test_without_a_mail_server_the_log_tells_of_the_mail_but_not_the_address() -> None:
    with capture_logs() as lines:
        SimulatedMailer().send_confirmation(ORDER, product=LAMP)

    assert lines == [{"event": "mail_simulated", "log_level": "info", "order_id": 7, "product_id": 3}]

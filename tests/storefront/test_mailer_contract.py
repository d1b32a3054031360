"""What the Mailer port promises, checked on every mailer, the tests' fake included."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from structlog.testing import capture_logs

from storefront.adapters.mail.simulated import SimulatedMailer
from storefront.adapters.mail.smtp import SmtpMailer
from storefront.domain.errors import MailError
from storefront.domain.order import Order, OrderId
from storefront.ports import Mailer
from tests.storefront.mailers import LAMP, ORDER, FakeMailer, running_mail_server

ANOTHER_ORDER = replace(ORDER, id=OrderId(2**53 + 1))


@dataclass(frozen=True, slots=True)
class Outbox:
    """A mailer, and by what each of its mails can be told from the others, in the order sent."""

    mailer: Mailer
    identities: Callable[[], Sequence[object]]


@pytest.fixture(params=["smtp", "simulated", "fake"])
def outbox(request: pytest.FixtureRequest) -> Iterator[Outbox]:
    match request.param:
        case "fake":
            fake = FakeMailer()
            yield Outbox(fake, lambda: fake.sent)
        case "simulated":
            with capture_logs() as lines:
                yield Outbox(SimulatedMailer(), lambda: [line["order_id"] for line in lines])
        case _:
            with running_mail_server() as server:
                mailer = SmtpMailer(server.address, sender="shop@example.com")
                yield Outbox(mailer, lambda: [delivery.mail["Message-ID"] for delivery in server.deliveries])


@pytest.fixture(params=["smtp", "fake"])
def failing_mailer(request: pytest.FixtureRequest) -> Iterator[Mailer]:
    """Every mailer that can fail: the simulated one has nothing to fail at."""
    if request.param == "fake":
        yield FakeMailer(failures=99)
        return
    with running_mail_server() as server:
        server.answers["DATA"] = "451 try again later"
        yield SmtpMailer(server.address, sender="shop@example.com")


def test_every_attempt_at_an_order_is_known_as_the_same_mail(outbox: Outbox) -> None:
    for order in (ORDER, ANOTHER_ORDER, ORDER):
        outbox.mailer.send_confirmation(order, product=LAMP)

    first, other, repeated = outbox.identities()
    assert first == repeated
    assert first != other


def test_a_mailer_that_fails_raises_its_one_error(failing_mailer: Mailer) -> None:
    with pytest.raises(MailError):
        failing_mailer.send_confirmation(ORDER, product=LAMP)


def test_threads_may_send_at_once(outbox: Outbox) -> None:
    barrier = threading.Barrier(8)

    def send(order: Order) -> None:
        barrier.wait()
        outbox.mailer.send_confirmation(order, product=LAMP)

    threads = [threading.Thread(target=send, args=[replace(ORDER, id=OrderId(number))]) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(outbox.identities())) == 8

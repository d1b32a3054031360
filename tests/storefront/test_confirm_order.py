"""The confirmation of an order: recorded once, with no transaction open while the mail is sent, and safe to repeat."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from storefront.domain.errors import MailError, OrderNotFoundError
from storefront.domain.order import Order, OrderDraft, OrderId
from storefront.use_cases.confirm_order import Confirmation, confirm_order
from storefront.use_cases.get_order import get_order
from storefront.use_cases.place_order import place_order
from sweephand import enqueue
from sweephand.model.outcomes import AttemptOutcome
from sweephand.testing import drain, perform
from tests.storefront.mailers import FakeMailer
from tests.storefront.shop import Shop


def confirm(shop: Shop, order_id: OrderId, *, mailer: FakeMailer | None = None) -> Confirmation:
    return confirm_order(order_id, new_unit_of_work=shop.new_unit_of_work, mailer=mailer or shop.mailer)


def stored(shop: Shop, order: Order) -> Order:
    return get_order(order.id, new_unit_of_work=shop.new_unit_of_work)


def test_an_order_is_confirmed_by_a_mail(shop: Shop) -> None:
    order = shop.add_order()

    confirmation = confirm(shop, order.id)

    confirmed = stored(shop, order)
    assert confirmation == Confirmation(order.id, was_confirmed_before=False)
    assert shop.mailer.sent == [order.id]
    assert confirmed.confirmed_at is not None
    assert order.placed_at <= confirmed.confirmed_at <= datetime.now(UTC)


def test_a_second_confirmation_changes_nothing_and_sends_nothing(shop: Shop) -> None:
    order = shop.add_order()
    confirm(shop, order.id)
    before = stored(shop, order)

    confirmation = confirm(shop, order.id)

    assert confirmation == Confirmation(order.id, was_confirmed_before=True)
    assert shop.mailer.sent == [order.id]
    assert stored(shop, order) == before


def test_of_two_confirmations_at_once_exactly_one_is_the_first(shop: Shop) -> None:
    order = shop.add_order()
    both_send = threading.Barrier(2)
    confirmations: list[Confirmation] = []

    def meet() -> None:
        both_send.wait(timeout=10)

    mailer = FakeMailer(during=meet)

    threads = [threading.Thread(target=lambda: confirmations.append(confirm(shop, order.id, mailer=mailer))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(confirmation.was_confirmed_before for confirmation in confirmations) == [False, True]


def test_no_transaction_is_open_while_the_mail_is_sent(shop: Shop) -> None:
    order = shop.add_order()
    seen: list[tuple[object, ...]] = []
    mailer = FakeMailer(during=lambda: seen.extend(shop.open_transactions()))

    confirm(shop, order.id, mailer=mailer)

    assert mailer.sent == [order.id]
    assert seen == []


def test_a_mail_that_is_not_sent_leaves_the_order_for_another_attempt(shop: Shop) -> None:
    order = shop.add_order()
    mailer = FakeMailer(failures=1)

    with pytest.raises(MailError):
        confirm(shop, order.id, mailer=mailer)
    unconfirmed = stored(shop, order)
    confirm(shop, order.id, mailer=mailer)

    assert not unconfirmed.is_confirmed
    assert stored(shop, order).is_confirmed


def test_an_order_that_does_not_exist_cannot_be_confirmed(shop: Shop) -> None:
    with pytest.raises(OrderNotFoundError, match="there is no order 404"):
        confirm(shop, OrderId(404))

    assert shop.mailer.sent == []


def test_a_new_order_is_confirmed_by_its_job(shop: Shop) -> None:
    draft = OrderDraft(product_id=shop.add_product_for_sale().id, quantity=1, email="ada@example.com")
    order = place_order(draft, new_unit_of_work=shop.new_unit_of_work)

    with shop.engine.begin() as connection:
        report = drain(connection, shop.app)

    assert report.completed == 1
    assert shop.mailer.sent == [order.id]
    assert stored(shop, order).is_confirmed


def test_the_job_of_a_deleted_order_cancels_itself(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        attempt = perform(connection, shop.app.jobs["confirm_order"], order_id=404)

    assert attempt.outcome is AttemptOutcome.CANCELLED
    assert str(attempt.error) == "there is no order 404"


def test_the_job_fails_with_the_mailer_and_is_tried_again(shop: Shop) -> None:
    order = shop.add_order()
    shop.mailer.failures = 1

    with shop.engine.begin() as connection:
        enqueue(connection, shop.app.jobs["confirm_order"], order_id=order.id)
        report = drain(connection, shop.app, until=timedelta(minutes=1), on_failure="retry")

    assert [attempt.outcome for attempt in report.attempts] == [AttemptOutcome.RETRIED, AttemptOutcome.COMPLETED]
    assert isinstance(report.errors[0], MailError)
    assert stored(shop, order).is_confirmed

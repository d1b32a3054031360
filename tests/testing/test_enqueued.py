"""A test sees what was enqueued, and is told well of what was not."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from sweephand import ArgumentsError, enqueue
from sweephand.testing import assert_enqueued, assert_not_enqueued, drain, enqueued
from tests.testing.shop import open_shop

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_the_arguments_of_waiting_jobs_are_listed_in_order(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish, product_id=7)
    drain(conn, shop.app)
    enqueue(conn, shop.publish.after(timedelta(hours=1)), product_id=9)
    enqueue(conn, shop.publish, product_id=8)
    enqueue(conn, shop.job("send_mail"), to="ann")

    assert enqueued(conn, shop.publish) == [{"product_id": 9}, {"product_id": 8}]
    assert enqueued(conn, shop.job("send_mail")) == [{"to": "ann", "copies": 1}]
    assert enqueued(conn, shop.job("fail")) == []


def test_a_job_is_found_by_some_of_its_arguments(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    first = enqueue(conn, shop.job("send_mail"), to="ann").job_id
    second = enqueue(conn, shop.job("send_mail"), to="ann", copies=2).job_id

    assert assert_enqueued(conn, shop.job("send_mail")) == first
    assert assert_enqueued(conn, shop.job("send_mail"), to="ann") == first
    assert assert_enqueued(conn, shop.job("send_mail"), copies=2) == second


def test_a_missing_job_is_said_with_those_that_wait(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.job("send_mail"), to="ann").job_id

    with pytest.raises(AssertionError) as caught:
        assert_enqueued(conn, shop.job("send_mail"), to="bob")
    with pytest.raises(AssertionError, match=r"no publish waits with \{\}; there are:\n  none$"):
        assert_enqueued(conn, shop.publish)

    assert str(caught.value).startswith('no send_mail waits with {"to": "bob"}; there are:\n')
    assert f'job {job_id}: {{"to": "ann", "copies": 1}}, to start at ' in str(caught.value)


def test_a_job_that_should_not_wait_is_said(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.publish, product_id=7).job_id

    assert_not_enqueued(conn, shop.publish, product_id=8)
    with pytest.raises(AssertionError, match=f"publish job {job_id} waits with "):
        assert_not_enqueued(conn, shop.publish)


def test_the_time_of_the_start_counts_if_it_is_asked_for(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish.after(timedelta(hours=1)), product_id=7)
    enqueue(conn, shop.publish.at(NOON), product_id=8)

    assert_enqueued(conn, shop.publish, product_id=7)
    assert_enqueued(conn, shop.publish.after(timedelta(hours=1)), product_id=7)
    assert_enqueued(conn, shop.publish.at(NOON), product_id=8)
    assert_not_enqueued(conn, shop.publish.after(timedelta(hours=2)), product_id=7)
    assert_not_enqueued(conn, shop.publish.at(NOON), product_id=7)
    with pytest.raises(AssertionError, match="and a delay of 2:00:00"):
        assert_enqueued(conn, shop.publish.after(timedelta(hours=2)), product_id=7)


def test_an_argument_that_the_job_does_not_take_is_an_error_and_no_answer(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)

    with pytest.raises(ArgumentsError, match="no parameter product"):
        assert_not_enqueued(conn, shop.publish, product=7)
    with pytest.raises(ArgumentsError, match="product_id"):
        assert_not_enqueued(conn, shop.publish, product_id="7")

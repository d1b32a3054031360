"""The shop as real processes: api, worker and dispatcher."""

import json
import re
import time

import httpx
import pytest

from sweephand import enqueue
from sweephand.postgres.connect import connect
from tests.storefront.mailers import running_mail_server
from tests.storefront.shop import Shop
from tests.support.processes import Commands
from tests.support.waiting import until

APP = "storefront.app:create_app"
LAMP = {"name": "Lamp", "description": "Gives light", "price_cents": 1999}
QUICK = {"WAREHOUSE_MIN_DELAY": "0", "WAREHOUSE_MAX_DELAY": "0", "STUCK_PUBLICATIONS_SCAN_INTERVAL": "1"}


def start_api(commands: Commands) -> str:
    """Return the URL of an API that is up."""
    line = commands.start("api", app=APP).wait_for_log("api_started")
    found = re.search(r"url=(\S+)", line)
    assert found is not None
    return found[1]


def published(shop: Shop) -> int:
    [(count,)] = shop.query("SELECT count(*) FROM storefront.product WHERE published_at IS NOT NULL")
    return int(str(count))


def test_one_command_makes_the_engines_tables_and_the_shops(commands: Commands, empty_database_url: str) -> None:
    migration = commands.start("migrate", app=APP, env={"DATABASE_URL": empty_database_url})

    assert migration.wait() == 0, migration.log
    with connect(empty_database_url, application_name="storefront tests") as connection:
        tables = connection.execute("SELECT to_regclass('sweephand.job'), to_regclass('storefront.product')").fetchone()
    assert tables == ("sweephand.job", "storefront.product")


@pytest.mark.usefixtures("shop")
def test_a_product_created_over_http_is_published_by_the_worker(commands: Commands) -> None:
    api_url = start_api(commands)
    worker = commands.start("worker", app=APP, env=QUICK)

    created = httpx.post(f"{api_url}/api/v1/products", json=LAMP)

    assert created.status_code == 201
    product_id = created.json()["id"]
    worker.wait_for_log(f"product_published product_id={product_id} was_published_before=false")
    shown = httpx.get(f"{api_url}/api/v1/products/{product_id}").json()
    assert shown["in_stock"] is True
    assert shown["published_at"] is not None


def test_an_order_placed_over_http_is_confirmed_by_the_worker_by_mail(shop: Shop, commands: Commands) -> None:
    api_url = start_api(commands)
    product = shop.add_product_for_sale()

    with running_mail_server() as mail_server:
        worker = commands.start("worker", app=APP, env={"SMTP_URL": f"smtp://{mail_server.address}"})
        placed = httpx.post(
            f"{api_url}/api/v1/orders", json={"product_id": product.id, "quantity": 2, "email": "ada@example.com"}
        )
        assert placed.status_code == 201
        order_id = placed.json()["id"]
        worker.wait_for_log(f"order_confirmed order_id={order_id} was_confirmed_before=false")

    [delivery] = mail_server.deliveries
    assert delivery.recipients == ["ada@example.com"]
    assert delivery.mail["Message-ID"] == f"<order-{order_id}@example.com>"
    assert httpx.get(f"{api_url}/api/v1/orders/{order_id}").json()["confirmed_at"] is not None
    assert "ada@" not in worker.log


def test_a_refused_mail_leaves_no_address_in_the_log_or_on_record(shop: Shop, commands: Commands) -> None:
    order = shop.add_order()
    with shop.engine.begin() as connection:
        enqueue(connection, shop.app.jobs["confirm_order"], order_id=order.id)

    with running_mail_server() as mail_server:
        mail_server.answers["RCPT"] = "550 ada@example.com is not here"
        worker = commands.start("worker", app=APP, env={"SMTP_URL": f"smtp://{mail_server.address}"})
        worker.wait_for_log("the mail server refused the recipient with 550")

    [(record,)] = until(
        lambda: shop.query("SELECT job_attempt::text FROM sweephand.job_attempt WHERE outcome IS NOT NULL"),
        message="the attempt is on record",
    )
    assert "refused the recipient with 550" in str(record)
    assert "ada@" not in str(record)
    assert "ada@" not in worker.log


def test_stuck_products_are_found_by_the_dispatcher_and_mended_by_the_worker(shop: Shop, commands: Commands) -> None:
    from storefront.adapters.postgres.stuck_publications import insert_stuck_products

    insert_stuck_products(shop.engine, count=3)

    dispatcher = commands.start("dispatcher", app=APP, env=QUICK)
    commands.start("worker", app=APP, env=QUICK)

    line = dispatcher.wait_for_log("dispatched sweep=stuck_publications")
    assert "enqueued=3 skipped_duplicates=0" in line
    until(lambda: published(shop) == 3, message="three products are published")


def test_a_wrong_setting_stops_a_process_at_its_start_by_name(commands: Commands) -> None:
    worker = commands.start("worker", app=APP, env={"WAREHOUSE_MIN_DELAY": "soon"})

    assert worker.wait() == 1
    assert worker.log == ("Error: WAREHOUSE_MIN_DELAY=soon: should be a valid number, unable to parse string as a number\n")


def test_a_body_beyond_the_limit_that_tells_no_length_is_refused(shop: Shop, commands: Commands) -> None:
    api_url = start_api(commands)
    body = json.dumps({**LAMP, "description": "x" * 1_100_000}).encode()

    answer = httpx.post(
        f"{api_url}/api/v1/products",
        content=(body[at : at + 65536] for at in range(0, len(body), 65536)),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 413
    assert shop.query("SELECT count(*) FROM storefront.product") == [(0,)]


@pytest.mark.usefixtures("shop")
def test_answers_do_not_wait_for_the_clients_delayed_acknowledgement(commands: Commands) -> None:
    api_url = start_api(commands)
    seconds = []

    with httpx.Client(base_url=api_url) as client:
        for _ in range(20):
            began = time.perf_counter()
            client.get("/healthz")
            seconds.append(time.perf_counter() - began)

    assert min(seconds) < 0.03

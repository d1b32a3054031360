"""The shop's jobs and sweeps: the way in for work that nobody waits for."""

from datetime import timedelta

import structlog

from storefront.adapters.postgres.stuck_publications import stuck_publications
from storefront.adapters.postgres.unconfirmed_orders import unconfirmed_orders
from storefront.domain.errors import OrderNotFoundError, ProductNotFoundError
from storefront.domain.order import OrderId
from storefront.domain.product import ProductId
from storefront.ports import Mailer, NewUnitOfWork, Warehouse
from storefront.use_cases import confirm_order as confirming
from storefront.use_cases import publish_product as publishing
from sweephand import App, CancelJob


def register_jobs(
    app: App,
    *,
    new_unit_of_work: NewUnitOfWork,
    warehouse: Warehouse,
    mailer: Mailer,
    scan_interval: timedelta,
    batch_limit: int,
) -> None:
    """Add the jobs that publish a product and confirm an order, and the sweeps that find those whose job got lost."""
    log = structlog.get_logger()

    @app.job(timeout=timedelta(minutes=1))
    def publish_product(product_id: int) -> None:
        """Publish the product; a failing warehouse makes the attempt fail, and the job is tried again."""
        try:
            publication = publishing.publish_product(
                ProductId(product_id), new_unit_of_work=new_unit_of_work, warehouse=warehouse
            )
        except ProductNotFoundError as error:
            raise CancelJob(str(error)) from error
        log.info("product_published", product_id=product_id, was_published_before=publication.was_published_before)

    @app.job(timeout=timedelta(minutes=1))
    def confirm_order(order_id: int) -> None:
        """Confirm the order by mail; a failing mail server makes the attempt fail, and the job is tried again."""
        try:
            confirmation = confirming.confirm_order(OrderId(order_id), new_unit_of_work=new_unit_of_work, mailer=mailer)
        except OrderNotFoundError as error:
            raise CancelJob(str(error)) from error
        log.info("order_confirmed", order_id=order_id, was_confirmed_before=confirmation.was_confirmed_before)

    app.sweep(every=scan_interval, limit=batch_limit, enqueues=publish_product)(stuck_publications)
    app.sweep(every=timedelta(minutes=1), limit=100, enqueues=confirm_order)(unconfirmed_orders)

"""The shop's jobs and sweeps: the way in for work that nobody waits for."""

from datetime import timedelta

import structlog

from storefront.adapters.postgres.stuck_publications import stuck_publications
from storefront.domain.errors import ProductNotFoundError
from storefront.domain.product import ProductId
from storefront.ports import NewUnitOfWork, Warehouse
from storefront.use_cases import publish_product as use_case
from sweephand import App, CancelJob


def register_jobs(
    app: App,
    *,
    new_unit_of_work: NewUnitOfWork,
    warehouse: Warehouse,
    scan_interval: timedelta,
    batch_limit: int,
) -> None:
    """Add the job that publishes a product, and the sweep that finds products whose job got lost."""
    log = structlog.get_logger()

    @app.job(timeout=timedelta(minutes=1))
    def publish_product(product_id: int) -> None:
        """Publish the product; a failing warehouse makes the attempt fail, and the job is tried again."""
        try:
            publication = use_case.publish_product(ProductId(product_id), new_unit_of_work=new_unit_of_work, warehouse=warehouse)
        except ProductNotFoundError as error:
            raise CancelJob(str(error)) from error
        log.info("product_published", product_id=product_id, was_published_before=publication.was_published_before)

    app.sweep(every=scan_interval, limit=batch_limit, enqueues=publish_product)(stuck_publications)

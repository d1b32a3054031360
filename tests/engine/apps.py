"""Applications for dispatcher processes: each sweeps the table `product`."""

from datetime import timedelta

from sqlalchemy import SelectBase, column, select, table, text

from sweephand import App

products = table("product", column("id"))

SCAN_LOCK = 20_261_130
"""The advisory lock that the scan of `hourly` waits for; whoever holds it halts the scan."""


def hourly() -> App:
    """Return an application whose sweep is due at the start, and then for an hour no more."""
    app = App("engine-hourly")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    @app.sweep(every=timedelta(hours=1), enqueues=mend)
    def broken_products() -> SelectBase:
        halt = text(f"(SELECT pg_advisory_xact_lock_shared({SCAN_LOCK})::text) = ''")
        return select(products.c.id.label("product_id")).where(halt).order_by(products.c.id)

    return app


def secondly() -> App:
    """Return an application whose sweep ticks every second."""
    app = App("engine-secondly")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    @app.sweep(every=timedelta(seconds=1), enqueues=mend)
    def broken_products() -> SelectBase:
        return select(products.c.id.label("product_id")).order_by(products.c.id)

    return app


def at_times_without_start() -> App:
    """Return an application whose sweep does not tick when leadership is gained."""
    app = App("engine-hourly")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    @app.sweep(every=timedelta(hours=1), enqueues=mend, run_on_start=False)
    def broken_products() -> SelectBase:
        return select(products.c.id.label("product_id")).order_by(products.c.id)

    return app

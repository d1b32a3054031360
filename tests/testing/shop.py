"""An application whose jobs write on the connection that a test gives them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
from sqlalchemy import Boolean, Integer, Select, column, select, table

from sweephand import App, CancelJob, DiscardJob, Job, RetryJob, Snooze, Sweep, current_job, enqueue

product = table("product", column("id", Integer), column("is_published", Boolean))


@dataclass(frozen=True, slots=True)
class Shop:
    """The jobs and the sweep, and what the jobs have done."""

    app: App
    publish: Job[...]
    unpublished: Sweep
    done: list[str] = field(default_factory=list)

    def job(self, kind: str) -> Job[...]:
        """Return another of its jobs."""
        return self.app.jobs[kind]


def open_shop(connection: psycopg.Connection, *, on_publish: Callable[[], None] = lambda: None) -> Shop:
    """Return a shop whose jobs use the connection; `on_publish` is called after a product was published."""
    app = App("shop")
    done: list[str] = []

    @app.job()
    def publish(product_id: int) -> None:
        connection.execute("UPDATE product SET is_published = true WHERE id = %s", [product_id])
        on_publish()
        done.append(f"published {product_id} in attempt {current_job().attempt}")

    @app.job(queue="mail")
    def send_mail(to: str, copies: int = 1) -> None:
        done.append(f"mailed {copies} to {to}")

    @app.job()
    async def greet(name: str) -> None:
        done.append(f"greeted {name}, {current_job().kind}")

    @app.job(unique=None)
    def chain(left: int) -> None:
        done.append(f"chain {left}")
        if left:
            enqueue(connection, app.jobs["chain"], left=left - 1)

    @app.job(unique=None, max_attempts=3)
    def fail() -> None:
        raise ValueError(f"no stock in attempt {current_job().attempt}")

    @app.job(unique=None)
    def complete_itself(then: str) -> None:
        with connection.transaction(force_rollback=then == "roll back"):
            current_job().complete(connection)
        if then == "raise":
            raise ValueError("too late")

    @app.job(unique=None)
    def end_by(name: str) -> None:
        raise {
            "snooze": Snooze(timedelta(seconds=90)),
            "cancel": CancelJob("gone"),
            "discard": DiscardJob("wrong"),
            "retry": RetryJob(timedelta(seconds=45)),
            "snooze for ever": Snooze(timedelta(0)),
        }[name]

    @app.sweep(every=timedelta(minutes=1), limit=2, enqueues=publish)
    def unpublished() -> Select[tuple[int]]:
        return select(product.c.id.label("product_id")).where(~product.c.is_published).order_by(product.c.id)

    return Shop(app, publish, unpublished, done)

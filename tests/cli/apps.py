"""Applications for the command line's tests."""

import os
import signal
from datetime import timedelta
from threading import Thread

import psycopg
from fastapi import FastAPI
from sqlalchemy import Select, column, select, values

from sweephand import App
from sweephand.web.problems import install_problem_handlers


def _migrate(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS shelf (id bigint PRIMARY KEY)")


def _make_api() -> FastAPI:
    api = FastAPI()
    install_problem_handlers(api)

    @api.get("/pid")
    def show_pid() -> int:
        return os.getpid()

    return api


app = App("shop", http=_make_api, migrate=_migrate)


@app.job()
def tidy_shelf(shelf_id: int) -> None:
    """Tidy a shelf: nothing to do here."""


@app.sweep(every=timedelta(seconds=60), limit=10, enqueues=tidy_shelf)
def untidy_shelves() -> Select[tuple[int]]:
    shelves = values(column("shelf_id"), name="shelves").data([(1,), (2,)])
    return select(shelves.c.shelf_id).order_by(shelves.c.shelf_id)


def _fail_to_migrate(_: str) -> None:
    thread = Thread(target=_divide, name="helper")
    thread.start()
    thread.join()
    _divide()


def _divide() -> None:
    raise ZeroDivisionError("by hand")


failing = App("failing", migrate=_fail_to_migrate)


def make_app_that_ends_its_worker() -> App:
    """Return an application whose worker process dies when it loads, and whose other processes live."""
    import sys

    if "worker" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return app

"""A renamed job runs what was enqueued under its former names."""

import psycopg
import pytest

from sweephand import App, AppError
from tests.lifecycle.conftest import StartWorker
from tests.support.jobs import count_by_state, insert_job
from tests.support.waiting import until


def test_jobs_of_former_kinds_run_beside_those_of_the_present_one(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    for shelf_id, kind in enumerate(("tidy", "tidy_up", "clear_shelf")):
        insert_job(conn, kind, args={"shelf_id": shelf_id})

    worker = start_worker()

    until(lambda: count_by_state(conn) == {"completed": 3}, message="all of them are completed")
    worker.wait_for_log("cleared stored_kind=tidy shelf_id=0")
    worker.wait_for_log("cleared stored_kind=tidy_up shelf_id=1")
    worker.wait_for_log("cleared stored_kind=clear_shelf shelf_id=2")


def test_a_former_name_is_taken_as_much_as_a_present_one() -> None:
    app = App("tidy")
    app.job(kind="clear", aliases=("tidy",))(clear)

    with pytest.raises(AppError, match="the kind tidy is taken in app tidy"):
        app.job(kind="tidy")(clear)
    with pytest.raises(AppError, match="the kind clear is taken in app tidy"):
        app.job(kind="sweep_up", aliases=("clear",))(clear)


def clear(shelf_id: int) -> None:
    """Be any job."""

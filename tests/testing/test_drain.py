"""Jobs run inside of a test's transaction as a worker would run them."""

from datetime import timedelta

import psycopg
import pytest

from sweephand import ArgumentsError, enqueue
from sweephand.model.outcomes import AttemptOutcome
from sweephand.testing import DrainReport, drain, let_pass, perform
from tests.support.jobs import stored_attempts, stored_job, stored_jobs
from tests.testing.shop import open_shop

MINUTE = timedelta(minutes=1)


def test_due_jobs_run_oldest_first_and_are_completed(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    conn.execute("INSERT INTO product VALUES (7), (8)")
    enqueue(conn, shop.publish, product_id=7)
    enqueue(conn, shop.publish, product_id=8)

    report = drain(conn, shop.app)

    assert shop.done == ["published 7 in attempt 1", "published 8 in attempt 1"]
    assert report.completed == 2
    assert [job.state for job in stored_jobs(conn)] == ["completed", "completed"]
    assert conn.execute("SELECT bool_and(is_published) FROM product").fetchone() == (True,)


def test_jobs_that_jobs_enqueue_run_too(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.job("chain"), left=2)

    drain(conn, shop.app)

    assert shop.done == ["chain 2", "chain 1", "chain 0"]


def test_only_the_queue_that_was_asked_for_is_drained(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish, product_id=7)
    enqueue(conn, shop.job("send_mail"), to="ann")

    report = drain(conn, shop.app, queue="mail")

    assert [attempt.kind for attempt in report.attempts] == ["send_mail"]
    assert shop.done == ["mailed 1 to ann"]


def test_an_async_job_runs_as_well(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.job("greet"), name="ann")

    drain(conn, shop.app)

    assert shop.done == ["greeted ann, greet"]


async def test_an_async_job_on_a_sync_connection_inside_a_loop_is_refused(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.job("greet"), name="ann")

    with pytest.raises(TypeError, match="greet is async, and an event loop runs here already"):
        drain(conn, shop.app)


def test_what_a_job_raises_fails_the_test_after_it_was_written(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.job("fail")).job_id

    with pytest.raises(ValueError, match="no stock in attempt 1"):
        drain(conn, shop.app)

    assert stored_job(conn, job_id).state == "retryable"
    assert [attempt.error for attempt in stored_attempts(conn, job_id)] == ["ValueError: no stock in attempt 1"]


def test_what_a_failing_job_wrote_goes_back(conn: psycopg.Connection) -> None:
    def break_down() -> None:
        conn.execute("SELECT 1 / 0")

    shop = open_shop(conn, on_publish=break_down)
    conn.execute("INSERT INTO product VALUES (7)")
    enqueue(conn, shop.publish, product_id=7)

    report = drain(conn, shop.app, on_failure="retry")

    assert isinstance(report.errors[0], psycopg.errors.DivisionByZero)
    assert conn.execute("SELECT is_published FROM product").fetchone() == (False,)


def test_retries_run_when_their_time_has_passed(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.job("fail")).job_id

    at_once = drain(conn, shop.app, on_failure="retry")
    soon = drain(conn, shop.app, on_failure="retry", until=timedelta(seconds=2))
    too_soon = drain(conn, shop.app, on_failure="retry", until=timedelta(seconds=10))
    late = drain(conn, shop.app, on_failure="retry", until=timedelta(seconds=10))

    assert [outcomes(report) for report in (at_once, soon, too_soon, late)] == [["retried"], ["retried"], [], ["discarded"]]
    assert [str(error) for error in late.errors] == ["no stock in attempt 3"]
    assert stored_job(conn, job_id).state == "discarded"


def test_all_retries_run_in_one_drain_that_lasts_long_enough(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.job("fail"))

    report = drain(conn, shop.app, on_failure="retry", until=timedelta(hours=1))

    assert outcomes(report) == ["retried", "retried", "discarded"]


def test_a_scheduled_job_runs_at_its_time(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish.after(timedelta(hours=1)), product_id=7)

    assert drain(conn, shop.app, until=timedelta(minutes=59)).attempts == ()
    assert drain(conn, shop.app, until=timedelta(minutes=1)).completed == 1


def test_jobs_run_in_the_order_of_their_times(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish.after(3 * MINUTE), product_id=3)
    enqueue(conn, shop.publish.after(1 * MINUTE), product_id=1)
    enqueue(conn, shop.publish.after(2 * MINUTE), product_id=2)

    drain(conn, shop.app, until=3 * MINUTE)

    assert [line.split()[1] for line in shop.done] == ["1", "2", "3"]


def test_time_that_was_let_pass_has_passed_for_jobs(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish.after(timedelta(days=30)), product_id=7)

    let_pass(conn, timedelta(days=30))

    assert drain(conn, shop.app).completed == 1


def test_a_cool_down_passes_too(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    tidy = shop.app.job(cool_down=timedelta(hours=1))(tidy_shelf)
    enqueue(conn, tidy, shelf_id=1)
    drain(conn, shop.app)

    let_pass(conn, timedelta(minutes=59))
    soon = enqueue(conn, tidy, shelf_id=1)
    let_pass(conn, timedelta(minutes=2))
    late = enqueue(conn, tidy, shelf_id=1)

    assert (soon.is_duplicate, late.is_duplicate) == (True, False)


def tidy_shelf(shelf_id: int) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("name", "outcome", "state", "attempt"),
    [
        ("snooze", "snoozed", "scheduled", 0),
        ("cancel", "cancelled", "cancelled", 1),
        ("discard", "discarded", "discarded", 1),
        ("retry", "retried", "retryable", 1),
    ],
)
def test_a_signal_ends_the_attempt_and_fails_no_test(
    conn: psycopg.Connection, name: str, outcome: str, state: str, attempt: int
) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.job("end_by"), name=name).job_id

    report = drain(conn, shop.app)

    assert outcomes(report) == [outcome]
    assert (stored_job(conn, job_id).state, stored_job(conn, job_id).attempt) == (state, attempt)


def test_a_job_that_is_due_for_ever_ends_the_test(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.job("end_by"), name="snooze for ever")

    with pytest.raises(AssertionError, match="jobs are still due after 1000 attempts"):
        drain(conn, shop.app)


@pytest.mark.parametrize("then", ["return", "roll back"])
def test_a_job_can_complete_itself_or_be_completed_by_its_return(conn: psycopg.Connection, then: str) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.job("complete_itself"), then=then).job_id

    report = drain(conn, shop.app)

    assert outcomes(report) == ["completed"]
    assert stored_job(conn, job_id).state == "completed"
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["completed"]


def test_a_job_that_raises_takes_its_completion_in_the_same_transaction_back(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.job("complete_itself"), then="raise").job_id

    drain(conn, shop.app, on_failure="retry")

    assert stored_job(conn, job_id).state == "retryable"


def test_stored_arguments_that_do_not_fit_discard_the_job(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    job_id = enqueue(conn, shop.publish, product_id=7).job_id
    conn.execute("""UPDATE sweephand.job SET args = '{"product": 7}'""")

    with pytest.raises(ArgumentsError, match="no parameter product"):
        drain(conn, shop.app)

    assert stored_job(conn, job_id).state == "discarded"


def test_a_job_is_performed_with_its_stored_arguments_and_its_context(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    conn.execute("INSERT INTO product VALUES (7)")

    attempt = perform(conn, shop.publish, product_id=7)

    assert (attempt.kind, attempt.attempt, attempt.outcome) == ("publish", 1, AttemptOutcome.COMPLETED)
    assert shop.done == ["published 7 in attempt 1"]
    assert stored_job(conn, attempt.job_id).state == "completed"


def test_a_performed_job_is_taken_whatever_else_is_due_and_whenever_it_is(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    enqueue(conn, shop.publish, product_id=1)

    perform(conn, shop.publish.after(timedelta(hours=1)), product_id=7)

    assert shop.done == ["published 7 in attempt 1"]


def test_a_performed_job_raises_what_its_function_raises(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)

    with pytest.raises(ValueError, match="no stock"):
        perform(conn, shop.job("fail"))
    snoozed = perform(conn, shop.job("end_by"), name="snooze")

    assert snoozed.outcome is AttemptOutcome.SNOOZED


def test_a_performed_job_that_cools_down_is_said_to(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    tidy = shop.app.job(cool_down=timedelta(hours=1))(tidy_shelf)
    perform(conn, tidy, shelf_id=1)

    with pytest.raises(AssertionError, match="tidy_shelf: an equal job, "):
        perform(conn, tidy, shelf_id=1)


def outcomes(report: DrainReport) -> list[str]:
    return [attempt.outcome.value for attempt in report.attempts]

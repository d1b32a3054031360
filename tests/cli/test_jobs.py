"""`sweephand jobs`, through the command line, on a real PostgreSQL."""

import psycopg
import pytest
from psycopg import sql

from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.claim import claim
from sweephand.postgres.finish import FinishedAttempt, finish
from tests.support.jobs import insert_job, insert_jobs, insert_worker, stored_attempts, stored_job, stored_jobs
from tests.support.operator import Operator

TOKEN = "11111111-1111-1111-1111-111111111111"
KEY = bytes(32)
HALF_HOURS = 36.5 * 3600  # shown as `1d 12h`, also when the test is slow


def _claim(connection: psycopg.Connection, *, queue: str = "default", kind: str = "noop") -> None:
    worker_id = insert_worker(connection)
    claim(connection, queue=queue, kinds=[kind], limit=1, worker_id=worker_id, claim_token=TOKEN)


def _fail(connection: psycopg.Connection, job_id: int, *, error: str, outcome: AttemptOutcome = AttemptOutcome.RETRIED) -> None:
    """Claim the job and end its attempt with an error."""
    _claim(connection, kind=f"kind-{job_id}" if stored_job(connection, job_id).kind != "noop" else "noop")
    ended = FinishedAttempt(
        job_id,
        stored_job(connection, job_id).attempt,
        TOKEN,
        outcome,
        started=10.0,
        ended=10.5,
        delay_seconds=60,
        error=error,
        traceback=f"Traceback (most recent call last):\n  …\n{error}\n",
    )
    assert finish(connection, [ended], worker_name="worker-a", monotonic_now=11.0) == []


def _audit(connection: psycopg.Connection) -> list[tuple[str, str, str, str | None]]:
    rows = connection.execute("SELECT actor, action, target, note FROM sweephand.audit ORDER BY id").fetchall()
    return [(str(actor), str(action), str(target), note) for actor, action, target, note in rows]


def test_list_shows_the_newest_first_in_aligned_lines(operator: Operator, connection: psycopg.Connection) -> None:
    insert_job(
        connection, "publish_product", args={"product_id": 7}, state="completed", attempt=1, finished_ago_seconds=HALF_HOURS
    )
    insert_job(connection, "send_mail", args={"to": "a b"}, queue="mail", state="scheduled", in_seconds=HALF_HOURS)

    listed = operator.run("jobs", "list")

    assert listed.lines == [
        "ID  KIND             QUEUE    STATE      ATTEMPT  WHEN           TICK  ARGUMENTS",
        ' 2  send_mail        mail     scheduled     0/25  due in 1d 12h        to="a b"',
        " 1  publish_product  default  completed     1/25  1d 12h ago           product_id=7",
    ]


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (["--state", "available"], [1]),
        (["--state", "running", "--state", "discarded"], [3, 2]),
        (["--kind", "mail"], [4]),
        (["--queue", "slow"], [5]),
        (["--tick", "77"], [6]),
        (["--arg", "product_id=7"], [7]),
        (["--arg", "product_id=7", "--arg", "name=a b"], []),
        (["--arg", "gone=null"], [7]),
        (["--older-than", "1h"], [8]),
    ],
)
def test_each_filter_chooses_its_jobs(
    operator: Operator, connection: psycopg.Connection, chosen: list[str], found: list[int]
) -> None:
    insert_job(connection)
    insert_job(connection, "work")
    _claim(connection, kind="work")
    insert_job(connection, "other", state="discarded", finished_ago_seconds=5)
    insert_job(connection, "mail", state="scheduled", in_seconds=60)
    insert_job(connection, "other", queue="slow", state="scheduled", in_seconds=60)
    connection.execute("UPDATE sweephand.job SET tick_id = 77 WHERE id = %s", [insert_job(connection, state="retryable")])
    insert_job(connection, args={"product_id": 7, "gone": None}, state="completed", finished_ago_seconds=5)
    old = insert_job(connection, state="cancelled", finished_ago_seconds=5)
    connection.execute("UPDATE sweephand.job SET created_at = now() - interval '61 minutes' WHERE id = %s", [old])

    listed = operator.run("jobs", "list", "--json", *chosen)

    assert [int(str(job["id"])) for job in listed.rows("jobs")] == found


def test_the_next_page_begins_below_the_last(operator: Operator, connection: psycopg.Connection) -> None:
    insert_jobs(connection, 5)

    first = operator.run("jobs", "list", "--limit", "2", "--json")
    second = operator.run("jobs", "list", "--limit", "3", "--before", str(first.document["next_before_id"]), "--json")

    assert [job["id"] for job in first.rows("jobs")] == ["5", "4"]
    assert [job["id"] for job in second.rows("jobs")] == ["3", "2", "1"]
    assert second.document["next_before_id"] is None


def test_ids_and_numbers_beyond_2_to_the_53_survive_in_json(operator: Operator, connection: psycopg.Connection) -> None:
    large = 2**53 + 1
    connection.execute("SELECT setval(pg_get_serial_sequence('sweephand.job', 'id'), %s)", [large - 1])
    insert_job(connection, args={"n": large})

    listed = operator.run("jobs", "list", "--json")

    assert listed.rows("jobs")[0]["id"] == str(large)
    assert f'"n": {large}' in listed.out


def test_text_from_a_job_cannot_steer_the_terminal(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection, args={"name": "\x1b[2Jgone\u202e"})
    _fail(connection, job_id, error="ValueError: \x1b]0;title\x07")

    written = operator.run("jobs", "list").out + operator.run("jobs", "show", str(job_id)).out

    assert "\x1b" not in written
    assert "\u202e" not in written
    assert r"\x1b]0;title\x07" in written


def test_show_has_arguments_attempts_and_the_last_traceback(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection, args={"product_id": 7})
    for error in ("ValueError: first", "ValueError: second"):
        _fail(connection, job_id, error=error)
        connection.execute("UPDATE sweephand.job SET scheduled_at = now() WHERE id = %s", [job_id])

    shown = operator.run("jobs", "show", str(job_id)).out

    assert "state     retryable\n" in shown
    assert '\nArguments\n  {\n    "product_id": 7\n  }\n' in shown
    assert "500ms  retried  worker-a  ValueError: first\n" in shown
    assert "\nTraceback of attempt 2\n  Traceback (most recent call last):\n" in shown
    assert "Traceback of attempt 1" not in shown
    assert "Traceback of attempt 1" in operator.run("jobs", "show", str(job_id), "--tracebacks").out


def test_a_job_that_is_not_there_is_one_line_and_exit_1(operator: Operator) -> None:
    answer = operator.run("jobs", "show", "42", exit_code=1)

    assert answer.err == "Error: there is no job 42; finished jobs are deleted when their retention is over\n"
    assert answer.out == ""


def test_failed_lists_the_latest_failures_with_their_errors(operator: Operator, connection: psycopg.Connection) -> None:
    retried = insert_job(connection)
    _fail(connection, retried, error="ValueError: no stock")
    discarded = insert_job(connection)
    _fail(connection, discarded, error="KeyError: 9", outcome=AttemptOutcome.DISCARDED)
    insert_job(connection, state="completed", finished_ago_seconds=1)

    listed = operator.run("jobs", "failed", "--json").rows("jobs")

    assert [(job["id"], job["last_error"]) for job in listed] == [
        (str(discarded), "KeyError: 9"),
        (str(retried), "ValueError: no stock"),
    ]


def test_errors_that_differ_in_numbers_are_one(operator: Operator, connection: psycopg.Connection) -> None:
    for number in (7, 9):
        _fail(connection, insert_job(connection), error=f"ValueError: product {number} not found\nat line {number}")
    _fail(connection, insert_job(connection), error="KeyError: x")
    cancelled = insert_job(connection)
    _fail(connection, cancelled, error="not wanted", outcome=AttemptOutcome.CANCELLED)

    groups = operator.run("jobs", "errors", "--json").rows("errors")

    assert [(group["attempts"], group["jobs"], group["pattern"], group["last_job_id"]) for group in groups] == [
        (2, 2, "ValueError: product # not found", "2"),
        (1, 1, "KeyError: x", "3"),
    ]


def test_stats_counts_what_waits_and_what_was_done_lately(operator: Operator, connection: psycopg.Connection) -> None:
    insert_jobs(connection, 3)
    insert_job(connection, queue="mail", state="retryable", in_seconds=-HALF_HOURS)
    insert_job(connection, state="completed", finished_ago_seconds=60)
    insert_job(connection, state="completed", finished_ago_seconds=7200)

    counted = operator.run("jobs", "stats")

    head, default, mail = (" ".join(line.split()) for line in counted.lines)
    assert head == "QUEUE SCHEDULED AVAILABLE RUNNING RETRYABLE WAITING FOR COMPLETED DISCARDED CANCELLED"
    assert (default[:16], default[-6:]) == ("default 0 3 0 0 ", " 1 0 0")
    assert mail == "mail 0 0 0 1 1d 12h 0 0 0"
    assert operator.run("jobs", "stats", "--by", "kind", "--since", "3h", "--json").rows("counts")[0]["completed"] == 2


def test_kind_measures_attempts_and_names_the_sweeps(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    _fail(connection, job_id, error="ValueError: no stock", outcome=AttemptOutcome.DISCARDED)

    view = operator.run("jobs", "kind", "noop", "--json").part("kind")

    assert view["numbers"] == {
        "attempts": 1,
        "completed": 0,
        "median_seconds": 0.5,
        "p95_seconds": 0.5,
        "max_seconds": 0.5,
    }
    assert "median 500ms, p95 500ms, longest 500ms; 0 % of 1 completed" in operator.run("jobs", "kind", "noop").out
    assert operator.run("jobs", "kind", "nope", exit_code=1).err.startswith("Error: there is no job of the kind nope ")


def test_a_discarded_job_gets_another_attempt(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection, state="discarded", attempt=3, max_attempts=3, finished_ago_seconds=60)

    answer = operator.run("jobs", "retry", str(job_id), "--by", "ana@example", "--note", "warehouse is back")

    assert answer.out == f"job {job_id} runs again, with at least one more attempt\n"
    shown = operator.run("jobs", "show", str(job_id), "--json").part("job")
    assert (shown["state"], shown["attempt"], shown["max_attempts"]) == ("available", 3, 4)
    assert _audit(connection) == [("ana@example", "job.retry", f"job {job_id}", "warehouse is back")]
    _claim(connection)
    assert stored_job(connection, job_id).attempt == 4


def test_retry_of_a_retryable_job_starts_it_now_and_notifies_its_queue(
    operator: Operator, connection: psycopg.Connection
) -> None:
    job_id = insert_job(connection, queue="mail", state="retryable", attempt=3, in_seconds=600)
    connection.execute('LISTEN "sweephand.mail"')

    operator.run("jobs", "retry", str(job_id))

    assert [notify.channel for notify in connection.notifies(timeout=5, stop_after=1)] == ["sweephand.mail"]
    job = stored_job(connection, job_id)
    assert (job.state, job.attempt) == ("available", 3)
    assert job.scheduled_in_seconds <= 0


def test_retry_of_a_running_job_is_refused(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    _claim(connection)

    answer = operator.run("jobs", "retry", str(job_id), exit_code=1)

    assert answer.err == f"Error: job {job_id} is running; wait for it or cancel it first\n"
    assert stored_job(connection, job_id).state == "running"
    assert _audit(connection) == []


def test_retry_names_the_unfinished_twin(operator: Operator, connection: psycopg.Connection) -> None:
    finished = insert_job(connection, state="completed", unique_key=KEY, finished_ago_seconds=60)
    twin = insert_job(connection, unique_key=KEY)

    answer = operator.run("jobs", "retry", str(finished), exit_code=1)

    expected = f"job {finished} has an unfinished twin, job {twin}, with equal arguments; wait for that one or cancel it first"
    assert answer.err == f"Error: {expected}\n"


def test_of_two_finished_twins_the_newer_is_retried(operator: Operator, connection: psycopg.Connection) -> None:
    old, new = (insert_job(connection, state="discarded", unique_key=KEY, finished_ago_seconds=60) for _ in range(2))

    answer = operator.run("jobs", "retry", "--state", "discarded", "--yes", "--json")

    assert answer.document["changed"] == [str(new)]
    assert [job["id"] for job in answer.rows("refused")] == [str(old)]


def test_cancel_of_a_waiting_job_finishes_it(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection, state="scheduled", in_seconds=600)

    answer = operator.run("jobs", "cancel", str(job_id))

    assert answer.out == f"job {job_id} never runs\n"
    assert stored_job(connection, job_id).state == "cancelled"


def test_cancel_of_a_running_job_asks_its_worker(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    _claim(connection)

    answer = operator.run("jobs", "cancel", str(job_id), "--note", "too slow")

    assert answer.out == f"job {job_id} is interrupted: its worker hears of it within 2 s\n"
    shown = operator.run("jobs", "show", str(job_id), "--json").part("job")
    assert (shown["state"], shown["cancel_reason"]) == ("running", "too slow")
    assert shown["cancel_requested_at"] is not None


def test_a_second_cancel_keeps_the_first_moment(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    _claim(connection)
    operator.run("jobs", "cancel", str(job_id), "--note", "first")
    first = operator.run("jobs", "show", str(job_id), "--json").part("job")

    operator.run("jobs", "cancel", str(job_id))

    second = operator.run("jobs", "show", str(job_id), "--json").part("job")
    assert second["cancel_requested_at"] == first["cancel_requested_at"]
    assert second["cancel_reason"] == "first"


def test_discard_keeps_a_waiting_job_as_failed(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection, state="retryable", attempt=1, in_seconds=600)

    operator.run("jobs", "discard", str(job_id))

    assert stored_job(connection, job_id).state == "discarded"
    assert operator.run("jobs", "failed", "--json").rows("jobs")[0]["id"] == str(job_id)


def test_delete_takes_the_attempts_along(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    _fail(connection, job_id, error="KeyError: 1", outcome=AttemptOutcome.DISCARDED)

    operator.run("jobs", "delete", str(job_id))

    assert stored_jobs(connection) == []
    assert stored_attempts(connection, job_id) == []
    assert [entry[1:3] for entry in _audit(connection)] == [("job.delete", f"job {job_id}")]


def test_what_can_be_done_is_done_and_the_rest_is_said(operator: Operator, connection: psycopg.Connection) -> None:
    waiting = insert_job(connection)
    completed = insert_job(connection, state="completed", finished_ago_seconds=5)

    answer = operator.run("jobs", "cancel", str(waiting), str(completed), "99", exit_code=1)

    assert answer.out == f"job {waiting} never runs\n"
    assert answer.err.splitlines() == [
        f"Error: job {completed} is completed; there is nothing left to cancel",
        "Error: there is no job 99; finished jobs are deleted when their retention is over",
    ]


@pytest.mark.parametrize("verb", ["retry", "cancel", "discard", "delete"])
def test_without_ids_or_a_filter_a_verb_is_refused(operator: Operator, connection: psycopg.Connection, verb: str) -> None:
    insert_jobs(connection, 3)

    answer = operator.run("jobs", verb, "--yes", exit_code=2)

    assert f"without ids or a filter this would {verb} every job; add a filter such as --kind, or --all" in answer.err
    assert {job.state for job in stored_jobs(connection)} == {"available"}


def test_ids_and_a_filter_together_are_refused(operator: Operator) -> None:
    assert "give ids or a filter, not both" in operator.run("jobs", "delete", "1", "--kind", "noop", exit_code=2).err


def test_a_filter_shows_the_count_and_asks(operator: Operator, connection: psycopg.Connection) -> None:
    insert_jobs(connection, 3, "publish_product")
    insert_jobs(connection, 1, "send_mail")

    declined = operator.run("jobs", "cancel", "--queue", "default", answer="n\n", exit_code=1)
    nobody = operator.run("jobs", "cancel", "--queue", "default", exit_code=1)

    assert declined.err.startswith("4 jobs (3 publish_product, 1 send_mail) would be cancelled. Go on? [y/N]: ")
    assert "Nothing was changed; --yes goes on without asking." in nobody.err
    assert {job.state for job in stored_jobs(connection)} == {"available"}
    assert operator.run("jobs", "cancel", "--queue", "default", answer="y\n").out == "4 jobs cancelled\n"


def test_a_bulk_change_is_one_entry_in_the_audit(operator: Operator, connection: psycopg.Connection) -> None:
    insert_jobs(connection, 1_203)
    _claim(connection)

    answer = operator.run("jobs", "discard", "--kind", "noop", "--yes", "--by", "ana", "--note", "wrong import")

    assert answer.out == "1,202 jobs discarded\n"
    expected = "jobs state=scheduled,available,retryable kind=noop"
    assert _audit(connection) == [("ana", "job.discard", expected, "1202 jobs: wrong import")]


def test_a_filter_without_states_means_what_the_verb_means(operator: Operator, connection: psycopg.Connection) -> None:
    insert_job(connection, state="completed", finished_ago_seconds=5)
    insert_job(connection, state="cancelled", finished_ago_seconds=5)
    failed = insert_job(connection, state="discarded", finished_ago_seconds=5)

    answer = operator.run("jobs", "retry", "--all", "--yes", "--json")

    assert answer.document["changed"] == [str(failed)]


def test_a_state_in_which_the_verb_does_nothing_is_said(operator: Operator) -> None:
    answer = operator.run("jobs", "retry", "--state", "running", "--yes", exit_code=1)

    expected = "Error: retry does nothing for state running: such a job is running; wait for it or cancel it first\n"
    assert answer.err == expected


def test_a_filter_that_finds_nothing_says_so_without_asking(operator: Operator) -> None:
    assert operator.run("jobs", "delete", "--kind", "nope").out == "no job matches; nothing was changed\n"


def test_empty_lists_are_empty_output_in_a_pipe(operator: Operator) -> None:
    listed = operator.run("jobs", "list")

    assert (listed.out, listed.err) == ("", "no job matches\n")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--older-than", "soon", "'soon' is no span of time; write 90s, 15m, 24h, 7d or 2w"),
        ("--older-than", "0s", "'0s' is no span of time; write 90s, 15m, 24h, 7d or 2w"),
        ("--arg", "product_id", "'product_id' is not name=value; for example product_id=7"),
        ("--queue", "No Queue", "'No Queue' is no queue's name"),
        ("--tick", str(2**63), f"'{2**63}' is no id: a whole number from 1 to {2**63 - 1}"),
        ("--before", "0", "'0' is no id"),
        ("--state", "lost", "'lost' is not one of"),
    ],
)
def test_wrong_values_are_wrong_usage(operator: Operator, option: str, value: str, expected: str) -> None:
    assert expected in operator.run("jobs", "list", option, value, exit_code=2).err


def test_a_database_that_is_down_is_one_line_without_the_password() -> None:
    answer = Operator("postgresql://shop:swordfish@127.0.0.1:1/none").run("jobs", "stats", exit_code=1)

    assert answer.err.startswith("Error: PostgreSQL does not answer: ")
    assert len(answer.err.splitlines()) == 1
    assert "swordfish" not in answer.err


def test_a_database_without_the_schema_says_what_to_run(empty_database_url: str) -> None:
    answer = Operator(empty_database_url).run("jobs", "stats", exit_code=1)

    assert answer.err == "Error: the database has no sweephand schema and needs version 0001; run: sweephand migrate\n"


def test_a_database_that_takes_no_writes_still_answers_and_says_so(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)
    connection.execute(
        sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(sql.Identifier(connection.info.dbname))
    )

    answer = operator.run("jobs", "cancel", str(job_id), exit_code=1)

    assert answer.err == "Error: PostgreSQL takes no writes now (it is read-only); try again when it does\n"
    assert operator.run("jobs", "list", "--json").rows("jobs")[0]["state"] == "available"


def test_rows_that_somebody_holds_are_not_waited_for_long(operator: Operator, connection: psycopg.Connection) -> None:
    job_id = insert_job(connection)

    with connection.transaction():
        connection.execute("SELECT FROM sweephand.job FOR UPDATE")
        answer = operator.run("jobs", "cancel", str(job_id), exit_code=1)

    assert answer.err == (
        "Error: somebody else has locked the rows or the table (canceling statement due to lock timeout); try again\n"
    )

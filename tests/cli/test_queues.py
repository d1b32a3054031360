"""`sweephand queues`, through the command line, on a real PostgreSQL."""

import psycopg
import pytest

from sweephand.postgres.claim import claim
from tests.support.jobs import insert_job, insert_jobs, insert_worker
from tests.support.operator import Operator

TOKEN = "11111111-1111-1111-1111-111111111111"


def _audit(connection: psycopg.Connection) -> list[tuple[str, str, str, str | None]]:
    rows = connection.execute("SELECT actor, action, target, note FROM sweephand.audit ORDER BY id").fetchall()
    return [(str(actor), str(action), str(target), note) for actor, action, target, note in rows]


def test_list_shows_what_waits_who_serves_and_what_is_paused(operator: Operator, connection: psycopg.Connection) -> None:
    insert_worker(connection)
    insert_worker(connection, "silent", silent_seconds=120)
    insert_jobs(connection, 3)
    insert_job(connection, queue="mail", in_seconds=-36.5 * 3600)
    operator.run("queues", "pause", "reports", "--by", "ana", "--note", "printer")
    operator.run("queues", "limit", "default", "4")

    listed = operator.run("queues", "list", "--json").rows("queues")

    assert [(queue["name"], queue["available"], queue["workers"], queue["concurrency_limit"]) for queue in listed] == [
        ("default", 3, 1, 4),
        ("mail", 1, 0, None),
        ("reports", 0, 0, None),
    ]
    lines = [" ".join(line.split()) for line in operator.run("queues", "list").lines]
    assert lines[2] == "mail 0 1 0 0 1d 12h 0 0 no worker serves it"
    assert lines[3].endswith("by ana: printer")


def test_a_paused_queue_gives_nothing_until_it_is_resumed(operator: Operator, connection: psycopg.Connection) -> None:
    insert_job(connection)
    worker_id = insert_worker(connection)

    def claimed() -> int:
        return len(claim(connection, queue="default", kinds=["noop"], limit=1, worker_id=worker_id, claim_token=TOKEN))

    assert operator.run("queues", "pause", "default").out == "queue default is paused\n"
    assert claimed() == 0
    assert operator.run("queues", "resume", "default").out == "queue default is served again\n"
    assert claimed() == 1
    assert operator.run("queues", "resume", "default").out == "queue default was not paused\n"
    assert [entry[1:3] for entry in _audit(connection)] == [
        ("queue.pause", "queue default"),
        ("queue.resume", "queue default"),
    ]


def test_a_limit_is_set_and_lifted(operator: Operator, connection: psycopg.Connection) -> None:
    insert_job(connection)

    assert operator.run("queues", "limit", "default", "1").out == "queue default runs at most 1 job at once\n"
    assert operator.run("queues", "limit", "default", "none").out == "queue default has no limit\n"
    assert operator.run("queues", "list", "--json").rows("queues")[0]["concurrency_limit"] is None
    assert [entry[1] for entry in _audit(connection)] == ["queue.limit 1", "queue.lift_limit"]


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1.5"])
def test_a_limit_that_is_no_number_from_1_on_is_wrong_usage(operator: Operator, limit: str) -> None:
    answer = operator.run("queues", "limit", "--", "default", limit, exit_code=2)

    assert f"'{limit}' is neither a number from 1 to 1,000,000 nor none" in answer.err


def test_a_queue_that_nothing_has_used_is_warned_of(operator: Operator, connection: psycopg.Connection) -> None:
    insert_job(connection)

    answer = operator.run("queues", "pause", "defualt")

    assert answer.err == "Note: nothing has used a queue defualt so far; known are default\n"


def test_no_queues_is_said_on_standard_error(operator: Operator) -> None:
    assert operator.run("queues", "list").err == "no queue is known: no job, sweep or worker has named one yet\n"

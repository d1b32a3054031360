"""A trace goes on from the code that enqueued a job through all of its attempts."""

import json
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, format_span_id, format_trace_id

from sweephand import enqueue, enqueue_many
from tests.lifecycle.traced_apps import app
from tests.support.jobs import insert_job
from tests.support.processes import Commands
from tests.support.transactions import CONNECTION_KINDS, AnyConnection, ConnectionKind, in_transaction
from tests.support.waiting import until

Spans = list[dict[str, object]]
CONTEXTS = "SELECT trace_context FROM sweephand.job ORDER BY id"


def traced_worker(commands: Commands, spans: Path) -> None:
    worker = commands.start("worker", app="tests.lifecycle.traced_apps:create_app", env={"SPANS": str(spans)})
    worker.wait_for_log("worker_started")


def ended(spans: Path, *, count: int) -> Spans:
    """Return the spans that the worker has written, once there are so many."""

    def read() -> Spans:
        lines = spans.read_text().splitlines() if spans.exists() else []
        return [json.loads(line) for line in lines] if len(lines) >= count else []

    return until(read, message=f"{count} spans have ended")


def part(span: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = span[name]
    assert isinstance(found, dict)
    return found


def traceparent(span: Span) -> dict[str, str]:
    context = span.get_span_context()
    trace_id, span_id = format_trace_id(context.trace_id), format_span_id(context.span_id)
    return {"traceparent": f"00-{trace_id}-{span_id}-{context.trace_flags:02x}"}


@pytest.mark.parametrize("kind", CONNECTION_KINDS)
async def test_the_active_span_is_stored_with_the_job(conn: psycopg.Connection, database_url: str, kind: ConnectionKind) -> None:
    def enqueue_one(connection: AnyConnection) -> object:
        return enqueue(connection, app.jobs["work"], n=1)

    def enqueue_two(connection: AnyConnection) -> object:
        return enqueue_many(connection, app.jobs["work"], [{"n": 2}, {"n": 3}])

    with TracerProvider().get_tracer("test").start_as_current_span("request") as span:
        await in_transaction(kind, database_url, enqueue_one, enqueue_two)

    assert conn.execute(CONTEXTS).fetchall() == [(traceparent(span),)] * 3


def test_without_an_active_span_nothing_is_stored(conn: psycopg.Connection) -> None:
    with conn.transaction():
        enqueue(conn, app.jobs["work"], n=1)

    assert conn.execute(CONTEXTS).fetchall() == [(None,)]


def test_the_trace_makes_no_job_different(conn: psycopg.Connection) -> None:
    tracer = TracerProvider().get_tracer("test")
    job = app.job(kind="once")(mend)

    with tracer.start_as_current_span("first"), conn.transaction():
        first = enqueue(conn, job, n=1)
    with tracer.start_as_current_span("second"), conn.transaction():
        second = enqueue(conn, job, n=1)

    assert second.is_duplicate
    assert second.job_id == first.job_id


def mend(n: int) -> None:
    """Be any job."""


@pytest.mark.parametrize("kind", ["work", "work_async"])
def test_an_attempt_is_a_span_of_the_trace_that_enqueued_the_job(
    conn: psycopg.Connection, commands: Commands, tmp_path: Path, kind: str
) -> None:
    traced_worker(commands, tmp_path / "spans")

    with TracerProvider().get_tracer("test").start_as_current_span("request") as request, conn.transaction():
        job_id = enqueue(conn, app.jobs[kind], n=1).job_id

    step, attempt = ended(tmp_path / "spans", count=2)
    context = request.get_span_context()
    assert (step["name"], attempt["name"], attempt["kind"]) == ("step 1", kind, "SpanKind.CONSUMER")
    assert step["parent_id"] == part(attempt, "context")["span_id"]
    assert attempt["parent_id"] == f"0x{format_span_id(context.span_id)}"
    assert part(attempt, "context")["trace_id"] == f"0x{format_trace_id(context.trace_id)}"
    assert part(attempt, "attributes") == {
        "messaging.system": "sweephand",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": str(job_id),
        "sweephand.attempt": 1,
    }


def test_a_failed_attempt_is_a_failed_span_and_a_snooze_is_not(
    conn: psycopg.Connection, commands: Commands, tmp_path: Path
) -> None:
    traced_worker(commands, tmp_path / "spans")

    insert_job(conn, "fail", args={"n": 1}, attempt=2)
    insert_job(conn, "snooze", args={"n": 1})

    failed, snoozed = sorted(ended(tmp_path / "spans", count=2), key=lambda span: str(span["name"]))
    events = failed["events"]
    assert part(failed, "status") == {"status_code": "ERROR", "description": "ValueError"}
    assert isinstance(events, list)
    assert events[0]["attributes"]["exception.message"] == "step 1"
    assert failed["parent_id"] is None
    assert part(snoozed, "status") == {"status_code": "UNSET"}
    assert part(snoozed, "attributes")["sweephand.signal"] == "Snooze"

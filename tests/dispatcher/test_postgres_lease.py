"""PostgresLease: what only a database can do to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import psycopg
import pytest

from sweephand.model.lease import (
    LeaseConflictError,
    LeaseFailure,
    LeaseForbiddenError,
    LeaseRecord,
    LeaseUnavailableError,
)
from sweephand.postgres.lease_row import PostgresLease

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
RECORD = LeaseRecord("a_1", 15, acquired_at=NOON, renewed_at=NOON, transitions=0)


@pytest.fixture
async def lease(database_url: str) -> AsyncIterator[PostgresLease]:
    store = PostgresLease(database_url, name="x")
    yield store
    await store.close()


@pytest.fixture
async def admin(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def test_a_row_that_was_deleted_and_made_anew_is_another_one(lease: PostgresLease, admin: psycopg.AsyncConnection) -> None:
    stored = await lease.create(RECORD)
    await admin.execute("DELETE FROM sweephand.lease")
    again = await lease.create(RECORD)

    with pytest.raises(LeaseConflictError):
        await lease.replace(stored, record=RECORD)

    assert again.version != stored.version


async def test_a_broken_connection_is_said_once_and_then_replaced(lease: PostgresLease, admin: psycopg.AsyncConnection) -> None:
    await lease.create(RECORD)
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'sweephand-lease'"
    )

    with pytest.raises(LeaseUnavailableError):
        await lease.get()

    assert (await lease.get()).record == RECORD


async def test_a_request_that_waits_for_a_lock_ends_at_once_when_cancelled(
    lease: PostgresLease, admin: psycopg.AsyncConnection
) -> None:
    stored = await lease.create(RECORD)
    loop = asyncio.get_running_loop()
    async with admin.transaction():
        await admin.execute("LOCK TABLE sweephand.lease")
        began_at = loop.time()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lease.replace(stored, record=RECORD), 0.2)
        seconds = loop.time() - began_at

    assert seconds < 1
    assert (await lease.get()).record == RECORD


async def test_a_silent_database_ends_no_deadline() -> None:
    writers: list[asyncio.StreamWriter] = []

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await reader.read()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    lease = PostgresLease(f"postgresql://u@127.0.0.1:{port}/d", name="x")
    loop = asyncio.get_running_loop()
    began_at = loop.time()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(lease.get(), 0.2)

    assert loop.time() - began_at < 1
    await lease.close()
    server.close()
    for writer in writers:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_nobody_listening_is_unavailable() -> None:
    lease = PostgresLease("postgresql://u@127.0.0.1:1/d", name="x")

    with pytest.raises(LeaseUnavailableError) as caught:
        await lease.get()

    assert caught.value.failure is LeaseFailure.NETWORK


async def test_a_database_that_is_not_migrated_says_what_to_do(empty_database_url: str) -> None:
    lease = PostgresLease(empty_database_url, name="x")

    with pytest.raises(LeaseUnavailableError, match="sweephand migrate"):
        await lease.get()
    await lease.close()


async def test_a_missing_right_says_verb_resource_name_and_subject(
    lease: PostgresLease, admin: psycopg.AsyncConnection, database_url: str
) -> None:
    role = f"reader_{admin.info.dbname}"[:60].replace("-", "_")
    parts = psycopg.conninfo.conninfo_to_dict(database_url)
    await lease.create(RECORD)
    await admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'reads'".encode())
    try:
        await admin.execute(f"GRANT USAGE ON SCHEMA sweephand TO {role}".encode())
        await admin.execute(f"GRANT SELECT ON sweephand.lease TO {role}".encode())
        url = database_url.replace(f"{parts['user']}@", f"{role}:reads@").replace(f"{parts['user']}:", f"{role}:reads:")
        if role not in url:
            pytest.skip("the database's URL names its user in a way that this test cannot change")
        reader = PostgresLease(url, name="x")
        stored = await reader.get()

        with pytest.raises(LeaseForbiddenError) as caught:
            await reader.replace(stored, record=RECORD)

        await reader.close()
    finally:
        await admin.execute(f"DROP OWNED BY {role}".encode())
        await admin.execute(f"DROP ROLE {role}".encode())
    assert caught.value.verb == "update"
    assert caught.value.name == "x"
    assert caught.value.subject == f"database user {role}"

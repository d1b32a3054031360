"""What every `LeaseStore` promises: checked on a process's memory, on PostgreSQL, and over HTTP on an API server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from sweephand.dispatcher.api_access import ApiAccess
from sweephand.dispatcher.kubernetes import KubernetesLease
from sweephand.dispatcher.lease import ProcessLease
from sweephand.model.lease import LeaseConflictError, LeaseMissingError, LeaseRecord, LeaseStore
from sweephand.postgres.lease_row import PostgresLease
from tests.support.fake_lease_api import FakeLeaseApi

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
RECORD = LeaseRecord("a_1", 15, acquired_at=NOON, renewed_at=NOON + timedelta(microseconds=7), transitions=0)
OTHER = LeaseRecord("b_2", 20, acquired_at=NOON, renewed_at=NOON + timedelta(hours=1), transitions=1)


@pytest.fixture
def api() -> Iterator[FakeLeaseApi]:
    with FakeLeaseApi() as server:
        yield server


@pytest.fixture(params=["process", "postgres", "kubernetes"])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[tuple[LeaseStore, LeaseStore]]:
    """Two stores of one lease, as two processes would have them; in memory there is only one."""
    with ExitStack() as stack:
        first: LeaseStore
        second: LeaseStore
        if request.param == "process":
            first = second = ProcessLease()
        elif request.param == "postgres":
            url = str(request.getfixturevalue("database_url"))
            first, second = PostgresLease(url, name="x"), PostgresLease(url, name="x", prepare=False)
        else:
            server = stack.enter_context(FakeLeaseApi())
            access = ApiAccess(server.url)
            first, second = (KubernetesLease(access, namespace="default", name="x") for _ in range(2))
        yield first, second
        await first.close()
        await second.close()


Stores = tuple[LeaseStore, LeaseStore]


async def test_a_lease_that_was_never_made_is_missing(stores: Stores) -> None:
    with pytest.raises(LeaseMissingError):
        await stores[0].get()


async def test_what_is_created_is_read_by_the_other(stores: Stores) -> None:
    created = await stores[0].create(RECORD)

    read = await stores[1].get()

    assert read.record == created.record == RECORD
    assert read.version == created.version


async def test_only_one_of_two_creates_it(stores: Stores) -> None:
    await stores[0].create(RECORD)

    with pytest.raises(LeaseConflictError):
        await stores[1].create(OTHER)

    assert (await stores[1].get()).record == RECORD


async def test_only_one_of_two_writes_after_the_same_read_succeeds(stores: Stores) -> None:
    await stores[0].create(RECORD)
    first, second = await stores[0].get(), await stores[1].get()
    written = await stores[0].replace(first, record=OTHER)

    with pytest.raises(LeaseConflictError):
        await stores[1].replace(second, record=RECORD)

    assert (await stores[1].get()) == written
    assert written.record == OTHER
    assert written.version != first.version


async def test_of_many_at_once_exactly_one_wins(stores: Stores) -> None:
    await stores[0].create(RECORD)
    read = await stores[0].get()
    # One request at a time is what one store is asked for, so two stores are two contenders.
    answers = await asyncio.gather(
        *(store.replace(read, record=OTHER) for store in {id(store): store for store in stores}.values()),
        return_exceptions=True,
    )

    assert len([answer for answer in answers if not isinstance(answer, Exception)]) == 1


async def test_each_write_has_a_version_of_its_own(stores: Stores) -> None:
    stored = await stores[0].create(RECORD)
    versions = {stored.version}
    for _ in range(5):
        stored = await stores[0].replace(stored, record=RECORD)
        versions.add(stored.version)

    assert len(versions) == 6


async def test_a_record_without_a_holder_can_be_stored(stores: Stores) -> None:
    stored = await stores[0].create(RECORD)

    await stores[0].replace(stored, record=LeaseRecord("", 1, acquired_at=NOON, renewed_at=NOON, transitions=3))

    assert (await stores[1].get()).record == LeaseRecord("", 1, acquired_at=NOON, renewed_at=NOON, transitions=3)

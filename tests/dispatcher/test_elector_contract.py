"""What every elector promises, with real stores and real clocks: on a process's memory, on PostgreSQL, over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from sweephand.dispatcher.api_access import ApiAccess
from sweephand.dispatcher.elector import unique_identity
from sweephand.dispatcher.kubernetes import KubernetesLease
from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.lease import ProcessLease
from sweephand.dispatcher.lease_elector import LeaseElector
from sweephand.model.lease import LeaseStore, LeaseTimings
from sweephand.postgres.lease_row import PostgresLease
from tests.support.fake_lease_api import ApiFault, FakeLeaseApi
from tests.support.waiting import until_async

TIMINGS = LeaseTimings(3, renew_deadline_seconds=2, retry_period_seconds=0.5)


@dataclass
class Contender:
    """An elector with work that only notes that it runs."""

    elector: LeaseElector
    run: "asyncio.Task[None]" = field(init=False)
    leaderships: int = 0
    is_leading: bool = False
    fail: bool = False

    def begin(self) -> None:
        self.run = asyncio.create_task(self.elector.run(self._lead))

    async def _lead(self, leadership: Leadership) -> None:
        self.leaderships += 1
        self.is_leading = True
        try:
            while not self.fail:
                leadership.beat()
                await asyncio.sleep(0.02)
        finally:
            self.is_leading = False
            self.fail = False

    async def stop(self) -> None:
        self.elector.stop()
        await asyncio.wait_for(self.run, 10)


MakeContender = Callable[[], Contender]


@pytest.fixture(params=["process", "postgres", "kubernetes"])
async def contender(request: pytest.FixtureRequest) -> AsyncIterator[MakeContender]:
    """Start an elector on the lease of this test; in memory all of them share one store, as threads of a process would."""
    stores: list[LeaseStore] = []
    contenders: list[Contender] = []
    with ExitStack() as stack:
        memory = ProcessLease()
        url = str(request.getfixturevalue("database_url")) if request.param == "postgres" else ""
        server = stack.enter_context(FakeLeaseApi()) if request.param == "kubernetes" else None

        def make() -> Contender:
            store: LeaseStore = memory
            if url:
                store = PostgresLease(url, name="x")
            if server is not None:
                store = KubernetesLease(ApiAccess(server.url), namespace="default", name="x")
            stores.append(store)
            elector = LeaseElector(store, identity=unique_identity("me"), timings=TIMINGS, look_seconds=0.2)
            contenders.append(Contender(elector))
            contenders[-1].begin()
            return contenders[-1]

        yield make
        for started in contenders:
            if not started.run.done():
                await started.stop()
        for store in stores:
            await store.close()


async def soon(condition: Callable[[], bool], message: str, *, deadline_seconds: float = 10) -> None:
    async def ask() -> bool:
        return condition()

    await until_async(ask, deadline_seconds=deadline_seconds, message=message)


async def test_one_leads_and_the_others_know_whom_they_follow(contender: MakeContender) -> None:
    first = contender()
    await soon(lambda: first.is_leading, "the first leads")
    second = contender()
    await soon(lambda: second.elector.status.holder == first.elector.identity, "the second knows the leader")

    assert not second.is_leading
    assert first.elector.status.is_leader
    assert first.elector.status.since is not None
    assert second.elector.status.since is None
    assert first.elector.is_live() is None
    assert second.elector.is_live() is None


async def test_a_stopped_leader_hands_over_at_once(contender: MakeContender) -> None:
    first = contender()
    await soon(lambda: first.is_leading, "the first leads")
    second = contender()
    await soon(lambda: second.elector.status.holder is not None, "the second follows")

    await first.stop()

    assert not first.is_leading
    await soon(lambda: second.is_leading, "the second leads", deadline_seconds=TIMINGS.lease_seconds - 0.5)


async def test_a_leader_that_vanishes_is_followed_after_its_lease(contender: MakeContender) -> None:
    first = contender()
    await soon(lambda: first.is_leading, "the first leads")
    second = contender()
    await soon(lambda: second.elector.status.holder is not None, "the second follows")

    first.run.cancel()
    await asyncio.wait([first.run])

    await soon(lambda: second.is_leading, "the second leads", deadline_seconds=15)
    assert first.elector.is_live() is not None


async def test_work_that_fails_is_begun_again_here_or_elsewhere(contender: MakeContender) -> None:
    first = contender()
    await soon(lambda: first.is_leading, "the first leads")

    first.fail = True

    await soon(lambda: first.leaderships == 2, "the first leads again")
    assert not first.run.done()


async def test_a_server_that_hangs_costs_the_leader_nothing() -> None:
    with FakeLeaseApi() as api:
        store = KubernetesLease(ApiAccess(api.url), namespace="default", name="x")
        only = Contender(LeaseElector(store, identity="me_1", timings=TIMINGS))
        only.begin()
        await soon(lambda: only.is_leading and only.elector.status.is_confirmed, "it leads")

        api.fault = ApiFault.HANG
        await soon(lambda: only.elector.status.is_unconfirmed, "it is unconfirmed")
        assert only.is_leading
        api.fault = ApiFault.NONE
        await soon(lambda: only.elector.status.is_confirmed, "it is confirmed again")

        assert only.leaderships == 1
        await only.stop()
        assert api.holder("x") == ""
        await store.close()

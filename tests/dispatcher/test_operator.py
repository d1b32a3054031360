"""The kopf operator against an API server over HTTP: its life, its watch, its logins, and its failures."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sweephand.dispatcher.api_access import ApiAccess
from sweephand.dispatcher.elector import Elector
from sweephand.dispatcher.kubernetes import KubernetesLease
from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.lease_elector import LeaseElector
from sweephand.dispatcher.operator import run_operator
from sweephand.model.lease import LeaseTimings
from tests.support.fake_lease_api import ApiFault, FakeLeaseApi
from tests.support.waiting import until_async

# A retry period so long that whatever happens sooner was caused by the watch, on a machine that is busy too.
TIMINGS = LeaseTimings(400, renew_deadline_seconds=300, retry_period_seconds=200)
SOON = 30.0

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def api() -> Iterator[FakeLeaseApi]:
    with FakeLeaseApi() as server:
        yield server


class Operator:
    """An operator that runs in this test's event loop, and whether its elector leads."""

    def __init__(self, api: FakeLeaseApi, *, token_path: Path | None = None) -> None:
        access = ApiAccess(api.url, token_path=token_path)
        self._store = KubernetesLease(access, namespace="default", name="x")
        self.elector: Elector = LeaseElector(self._store, identity="me_1", timings=TIMINGS)
        self.leaderships = 0
        self.is_leading = False
        self.error: Exception | None = None
        self.task = asyncio.create_task(self._run(access))

    async def _run(self, access: ApiAccess) -> None:
        try:
            await run_operator(
                access,
                namespace="default",
                lease_name="x",
                identity="me_1",
                make_elector=lambda: self.elector,
                lead_with=self._lead_with,
                exit_seconds=60,
            )
        finally:
            await self._store.close()

    async def _lead_with(self, elector: Elector) -> None:
        await elector.run(self._lead)

    async def _lead(self, leadership: Leadership) -> None:
        self.leaderships += 1
        self.is_leading = True
        try:
            while self.error is None:
                leadership.beat()
                await asyncio.sleep(0.05)
        finally:
            self.is_leading = False


@asynccontextmanager
async def running(api: FakeLeaseApi, *, token_path: Path | None = None) -> AsyncIterator[Operator]:
    """Run an operator until it leads and watches; end it by SIGTERM."""
    operator = Operator(api, token_path=token_path)
    await soon(lambda: operator.is_leading and api.watches() == 1, "it leads and watches")
    try:
        yield operator
    finally:
        if not operator.task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(operator.task, SOON)
        gc.collect()  # what was left open warns here, and not in whatever test comes next


async def soon(condition: Callable[[], bool], message: str) -> None:
    async def ask() -> bool:
        return condition()

    await until_async(ask, deadline_seconds=SOON, message=message)


async def test_sigterm_ends_the_work_and_releases_the_lease(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        assert api.holder("x") == "me_1"

        os.kill(os.getpid(), signal.SIGTERM)

        await soon(lambda: api.holder("x") == "", "the lease is released")
        assert not operator.is_leading
        await asyncio.wait_for(operator.task, SOON)


def watches_begun(api: FakeLeaseApi) -> int:
    return sum("watch=true" in request for request in api.requests)


async def test_nothing_but_the_lease_is_written_and_only_it_is_watched(api: FakeLeaseApi) -> None:
    async with running(api):
        pass

    written = {request for request in api.requests if not request.startswith("GET")}
    watched = [request for request in api.requests if "watch=true" in request]
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert written == {f"POST {leases}", f"PUT {leases}/x"}
    assert watched
    assert all("fieldSelector=metadata.name%3Dx" in request for request in watched)
    lease = api.lease("x") or {}
    assert set(dict(lease["metadata"])) == {"name", "namespace", "uid", "labels", "resourceVersion"}  # type: ignore[call-overload]  # JSON


async def test_the_watch_tells_at_once_that_the_lease_was_taken(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        api.edit("x", lambda lease: lease.update(spec={"holderIdentity": "other", "leaseDurationSeconds": 400}))

        await soon(lambda: not operator.is_leading, "it stands down")

        assert api.holder("x") == "other"


async def test_the_watch_tells_at_once_that_the_lease_was_released(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        api.edit("x", lambda lease: lease.update(spec={"holderIdentity": "other", "leaseDurationSeconds": 400}))
        await soon(lambda: not operator.is_leading, "it stands down")

        api.edit("x", lambda lease: lease.update(spec={"holderIdentity": "", "leaseDurationSeconds": 1}))

        await soon(lambda: operator.is_leading, "it leads again")
        assert operator.leaderships == 2


async def test_a_deleted_lease_is_made_anew_at_once_and_the_work_goes_on(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        api.delete("x")

        await soon(lambda: api.holder("x") == "me_1", "the lease is there again")

        assert operator.is_leading
        assert operator.leaderships == 1


async def test_when_kopf_fails_the_leader_goes_on_and_the_watch_comes_back(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        begun = watches_begun(api)
        api.fail_watches()
        # Not that it is gone, then back: both may have happened before a busy machine comes to look.
        await soon(lambda: watches_begun(api) > begun and api.watches() == 1, "the watch is back")

        assert operator.is_leading
        assert operator.leaderships == 1
        api.delete("x")
        await soon(lambda: api.holder("x") == "me_1", "the new watch tells of the deletion")


async def test_sigterm_while_kopf_is_being_started_anew_releases_the_lease(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        begun = watches_begun(api)
        api.fail_watches()
        # For a second, which a busy machine may let go by: then the signal comes a little later than it should.
        await soon(lambda: api.watches() == 0 or watches_begun(api) > begun, "the watch is gone")

        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(operator.task, SOON)

    assert api.holder("x") == ""


async def test_refused_tokens_end_nothing(api: FakeLeaseApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    api.tokens = {"first"}
    async with running(api, token_path=token) as operator:
        api.tokens = {"second"}
        api.end_watches()
        refused = len(api.requests)
        await soon(lambda: len(api.requests) >= refused + 2, "the old token is refused twice")
        assert not operator.task.done()

        token.write_text("second")

        await soon(lambda: api.watches() == 1, "it watches with the new token")
        assert operator.is_leading


async def test_a_forbidden_watch_ends_nothing(api: FakeLeaseApi) -> None:
    async with running(api) as operator:
        api.fault = ApiFault.FORBIDDEN
        api.end_watches()
        refused = len(api.requests)
        await soon(lambda: len(api.requests) >= refused + 2, "it tries twice")
        api.fault = ApiFault.NONE

        await soon(lambda: api.watches() == 1, "it watches again")
        assert operator.is_leading


async def test_an_end_of_the_contention_ends_the_operator_and_is_raised(api: FakeLeaseApi) -> None:
    async def fail(_: Elector) -> None:
        raise RuntimeError("the process cannot go on")

    store = KubernetesLease(ApiAccess(api.url), namespace="default", name="x")

    with pytest.raises(RuntimeError, match="cannot go on"):
        await asyncio.wait_for(
            run_operator(
                ApiAccess(api.url),
                namespace="default",
                lease_name="x",
                identity="me_1",
                make_elector=lambda: LeaseElector(store, identity="me_1", timings=TIMINGS),
                lead_with=fail,
                exit_seconds=60,
            ),
            SOON,
        )
    await store.close()

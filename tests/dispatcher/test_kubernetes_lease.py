"""KubernetesLease over real HTTP: what only an API server can do to it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sweephand.dispatcher.api_access import ApiAccess, TokenFile
from sweephand.dispatcher.kubernetes import KubernetesLease
from sweephand.dispatcher.lease_object import micro_time
from sweephand.model.errors import SettingsError
from sweephand.model.lease import (
    LeaseConflictError,
    LeaseFailure,
    LeaseForbiddenError,
    LeaseMissingError,
    LeaseRecord,
    LeaseUnauthorizedError,
    LeaseUnavailableError,
)
from tests.support.fake_lease_api import ApiFault, FakeLeaseApi

NOON = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
RECORD = LeaseRecord("a_1", 15, acquired_at=NOON, renewed_at=NOON, transitions=0)


@pytest.fixture
def api() -> Iterator[FakeLeaseApi]:
    with FakeLeaseApi() as server:
        yield server


@pytest.fixture
async def store(api: FakeLeaseApi) -> AsyncIterator[KubernetesLease]:
    lease = KubernetesLease(ApiAccess(api.url), namespace="default", name="x", labels={"app": "tidy"})
    yield lease
    await lease.close()


def test_micro_time_keeps_six_digits_where_isoformat_drops_them() -> None:
    assert micro_time(NOON) == "2026-11-30T12:00:00.000000Z"


async def test_labels_and_unknown_fields_survive_a_write(api: FakeLeaseApi, store: KubernetesLease) -> None:
    await store.create(RECORD)
    api.edit("x", lambda lease: lease.update(spec={**dict(lease["spec"]), "strategy": "OldestEmulationVersion"}))  # type: ignore[call-overload]  # JSON
    stored = await store.get()

    await store.replace(stored, record=RECORD)

    lease = api.lease("x") or {}
    assert lease["metadata"]["labels"] == {"app": "tidy"}  # type: ignore[index]  # JSON
    assert lease["spec"]["strategy"] == "OldestEmulationVersion"  # type: ignore[index]  # JSON


async def test_a_write_on_a_deleted_lease_is_a_conflict_and_makes_none(api: FakeLeaseApi, store: KubernetesLease) -> None:
    stored = await store.create(RECORD)
    api.delete("x")

    with pytest.raises(LeaseConflictError):
        await store.replace(stored, record=RECORD)

    with pytest.raises(LeaseMissingError):
        await store.get()


async def test_a_write_on_a_lease_that_was_made_anew_is_a_conflict(api: FakeLeaseApi, store: KubernetesLease) -> None:
    stored = await store.create(RECORD)
    api.delete("x")
    await store.create(RECORD)

    with pytest.raises(LeaseConflictError):
        await store.replace(stored, record=RECORD)


@pytest.mark.parametrize(
    ("fault", "failure"),
    [
        (ApiFault.RESET, LeaseFailure.NETWORK),
        (ApiFault.RESET_AFTER, LeaseFailure.NETWORK),
        (ApiFault.SERVER_ERROR, LeaseFailure.SERVER),
        (ApiFault.TOO_MANY, LeaseFailure.SERVER),
        (ApiFault.NONSENSE, LeaseFailure.SERVER),
    ],
)
async def test_no_answer_to_the_point_is_unavailable(
    api: FakeLeaseApi, store: KubernetesLease, fault: ApiFault, failure: LeaseFailure
) -> None:
    stored = await store.create(RECORD)
    api.fault = fault

    for attempt in (store.get(), store.replace(stored, record=RECORD)):
        with pytest.raises(LeaseUnavailableError) as caught:
            await attempt
        assert caught.value.failure is failure

    api.fault = ApiFault.NONE
    assert (await store.get()).record.holder == "a_1"


async def test_nobody_listening_is_unavailable() -> None:
    store = KubernetesLease(ApiAccess("http://127.0.0.1:1"), namespace="default", name="x")

    with pytest.raises(LeaseUnavailableError) as caught:
        await store.get()

    assert caught.value.failure is LeaseFailure.NETWORK
    await store.close()


async def test_a_cancelled_request_ends_at_once_and_the_next_one_works(api: FakeLeaseApi, store: KubernetesLease) -> None:
    stored = await store.create(RECORD)
    api.fault = ApiFault.HANG_AFTER
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.replace(stored, record=RECORD), 0.1)

    api.fault = ApiFault.NONE

    assert (await store.get()).version != stored.version, "the write landed although nobody waited for it"


async def test_a_refusal_says_verb_resource_name_and_subject(api: FakeLeaseApi, store: KubernetesLease) -> None:
    stored = await store.create(RECORD)
    api.fault = ApiFault.FORBIDDEN

    with pytest.raises(LeaseForbiddenError) as caught:
        await store.replace(stored, record=RECORD)

    assert caught.value.verb == "update"
    assert caught.value.resource == "leases.coordination.k8s.io in namespace default"
    assert caught.value.name == "x"
    assert caught.value.subject == "system:serviceaccount:default:dispatcher"


async def test_a_token_that_was_replaced_is_used_at_once_after_a_401(api: FakeLeaseApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    api.tokens = {"first"}
    store = KubernetesLease(ApiAccess(api.url, token_path=token), namespace="default", name="x")
    await store.create(RECORD)

    token.write_text("second\n")
    api.tokens = {"second"}

    assert (await store.get()).record == RECORD
    await store.close()


async def test_a_token_that_nobody_knows_is_unauthorized(api: FakeLeaseApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    api.tokens = {"second"}
    store = KubernetesLease(ApiAccess(api.url, token_path=token), namespace="default", name="x")

    with pytest.raises(LeaseUnauthorizedError):
        await store.get()

    assert len(api.requests) == 1, "the same token is not tried twice"
    await store.close()


def test_the_token_is_read_again_after_ten_seconds_and_survives_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    now = [100.0]
    tokens = TokenFile(path, monotonic=lambda: now[0])
    assert tokens.token() is None
    path.write_text("first")
    assert tokens.token() == "first"

    path.write_text("second")
    now[0] += 9.9
    assert tokens.token() == "first"
    now[0] += 0.2
    assert tokens.token() == "second"

    path.unlink()
    now[0] += 60
    assert tokens.token() == "second"


async def test_the_offset_of_the_clocks_is_known_after_an_answer(store: KubernetesLease) -> None:
    before = store.clock_offset_seconds

    await store.create(RECORD)

    assert before is None
    assert abs(store.clock_offset_seconds or 99) < 2


def test_in_a_pod_the_access_comes_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")

    access = ApiAccess.in_cluster(
        {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, service_account=tmp_path
    )

    assert access.api_url == "https://[fd00::1]:6443"
    assert access.ca_path == tmp_path / "ca.crt"


def test_outside_of_a_pod_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="SWEEPHAND_ELECTOR=postgres"):
        ApiAccess.in_cluster({}, service_account=tmp_path)
    with pytest.raises(SettingsError, match="automountServiceAccountToken"):
        ApiAccess.in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)

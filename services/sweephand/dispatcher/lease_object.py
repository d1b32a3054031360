"""Translate between a coordination.k8s.io/v1 Lease as JSON and its record. What is not ours stays as it came."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from sweephand.model.lease import LeaseFailure, LeaseRecord, LeaseUnavailableError, StoredLease


def stored_lease(body: object) -> StoredLease:
    """Return the record in a Lease. Fields that are missing or of a wrong type count as empty.

    Raises:
        LeaseUnavailableError: it is no Lease: without a resource version it cannot be replaced.
    """
    lease = _mapping(body)
    version = _text(_mapping(lease.get("metadata")).get("resourceVersion"))
    if not version:
        raise LeaseUnavailableError("the API server's answer is no Lease", failure=LeaseFailure.SERVER)
    spec = _mapping(lease.get("spec"))
    record = LeaseRecord(
        holder=_text(spec.get("holderIdentity")),
        lease_seconds=_whole(spec.get("leaseDurationSeconds")),
        acquired_at=_moment(spec.get("acquireTime")),
        renewed_at=_moment(spec.get("renewTime")),
        transitions=_whole(spec.get("leaseTransitions")),
    )
    return StoredLease(record, version=version, body=lease)


def new_lease(record: LeaseRecord, *, name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, object]:
    """Return the Lease to create."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": _spec(record),
    }


def changed_lease(stored: StoredLease, *, record: LeaseRecord) -> dict[str, object]:
    """Return the Lease that was read, its uid and version among the rest, with another record in it."""
    return {**stored.body, "spec": {**_mapping(stored.body.get("spec")), **_spec(record)}}


def status_message(body: object) -> str:
    """Return the message of a Status, empty if it is none."""
    return _text(_mapping(body).get("message"))


def subject_of(message: str) -> str:
    """Return whom a message of the authorizer is about."""
    found = re.search(r'User "([^"]+)"', message)
    return found.group(1) if found else "this process's service account"


def micro_time(moment: datetime) -> str:
    """Return the API's MicroTime: UTC with exactly six fractional digits, or it answers 400."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(record: LeaseRecord) -> dict[str, object]:
    moments = {"acquireTime": record.acquired_at, "renewTime": record.renewed_at}
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.lease_seconds,
        "leaseTransitions": record.transitions,
        **{name: micro_time(moment) for name, moment in moments.items() if moment is not None},
    }


def _mapping(value: object) -> Mapping[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None

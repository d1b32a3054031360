"""Keep the lease as a Lease of Kubernetes: the `LeaseStore` over the API server's HTTP, with aiohttp."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Literal

import aiohttp

from sweephand.dispatcher.api_access import ApiAccess, TokenFile
from sweephand.dispatcher.lease_object import changed_lease, new_lease, status_message, stored_lease, subject_of
from sweephand.model.lease import (
    LeaseConflictError,
    LeaseError,
    LeaseFailure,
    LeaseForbiddenError,
    LeaseMissingError,
    LeaseRecord,
    LeaseUnauthorizedError,
    LeaseUnavailableError,
    StoredLease,
)

_Verb = Literal["get", "create", "update"]
_METHODS: Mapping[_Verb, str] = {"get": "GET", "create": "POST", "update": "PUT"}


class KubernetesLease:
    """A `LeaseStore` on one Lease object. Its requests have no time limit of their own: the elector sets one for each."""

    def __init__(self, access: ApiAccess, *, namespace: str, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Take the address; nothing is opened yet. `labels` are for the Lease when it is created."""
        self._access = access
        self._namespace = namespace
        self._name = name
        self._labels = labels or {}
        self._token = TokenFile(access.token_path) if access.token_path else None
        self._session: aiohttp.ClientSession | None = None
        self._collection = f"{access.api_url.rstrip('/')}/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.clock_offset_seconds: float | None = None
        """How far this machine's clock is ahead of the API server's, to a second, as of the last answer."""

    async def get(self) -> StoredLease:
        """Return the Lease."""
        return await self._ask("get", f"{self._collection}/{self._name}")

    async def create(self, record: LeaseRecord) -> StoredLease:
        """Create the Lease, with the labels."""
        body = new_lease(record, name=self._name, namespace=self._namespace, labels=self._labels)
        return await self._ask("create", self._collection, body)

    async def replace(self, stored: StoredLease, *, record: LeaseRecord) -> StoredLease:
        """Put the object that was read back, with another record in it. Uid and version are compared by the server."""
        return await self._ask("update", f"{self._collection}/{self._name}", changed_lease(stored, record=record))

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, verb: _Verb, url: str, body: Mapping[str, object] | None = None) -> StoredLease:
        status, answer = await self._send(verb, url, body)
        if status == HTTPStatus.UNAUTHORIZED and self._token is not None and self._token.read_again():
            status, answer = await self._send(verb, url, body)
        if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise self._error(verb, status, message=status_message(answer))
        return stored_lease(answer)

    async def _send(self, verb: _Verb, url: str, body: Mapping[str, object] | None) -> tuple[int, object]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._access.tls() if url.startswith("https") else True),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={"Accept": "application/json", "User-Agent": "sweephand"},
            )
        token = self._token.token() if self._token else None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with self._session.request(_METHODS[verb], url, json=body, headers=headers, allow_redirects=False) as response:
                text = await response.text(errors="replace")
                self._compare_clocks(response.headers.get("Date"))
                return response.status, _parsed(text)
        except aiohttp.ClientSSLError as error:
            await self.close()  # the authority may have been replaced; its file is read again
            raise LeaseUnavailableError(f"the API server is not trusted: {error}", failure=LeaseFailure.NETWORK) from error
        except (aiohttp.ClientError, OSError) as error:
            raise LeaseUnavailableError(
                f"the API server cannot be reached: {str(error) or type(error).__name__}", failure=LeaseFailure.NETWORK
            ) from error

    def _error(self, verb: _Verb, status: int, *, message: str) -> LeaseError:
        what = f"{status} {message}".strip()
        if status == HTTPStatus.CONFLICT:
            return LeaseConflictError(what)
        if status == HTTPStatus.NOT_FOUND and verb != "create":
            return LeaseMissingError(what)
        if status == HTTPStatus.FORBIDDEN:
            resource = f"leases.coordination.k8s.io in namespace {self._namespace}"
            return LeaseForbiddenError(verb=verb, resource=resource, name=self._name, subject=subject_of(message))
        if status == HTTPStatus.UNAUTHORIZED:
            return LeaseUnauthorizedError(f"the API server does not accept the service account's token: {what}")
        is_busy = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        failure = LeaseFailure.SERVER if is_busy else LeaseFailure.OTHER
        return LeaseUnavailableError(f"the API server answers {what}", failure=failure)

    def _compare_clocks(self, date: str | None) -> None:
        try:
            server = parsedate_to_datetime(date or "")
        except ValueError:
            return
        if server.tzinfo is not None:
            self.clock_offset_seconds = (datetime.now(UTC) - server).total_seconds()


def _parsed(text: str) -> object:
    try:
        parsed: object = json.loads(text)
    except ValueError:
        return None
    return parsed

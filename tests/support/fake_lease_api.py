"""A Kubernetes API server that knows Leases and nothing else, with switches for all that may go wrong.

It speaks HTTP on a port of its own, in a thread of its own, so that real processes can use it and a test can freeze nothing but
itself. What it refuses is what a real one refuses (the times' form, versions, uids, tokens). Discovery, list and watch are there
for kopf.

    with FakeLeaseApi() as api:
        api.fault = ApiFault.HANG
"""

import asyncio
import copy
import json
import re
import secrets
import threading
from collections.abc import Awaitable, Callable
from enum import StrEnum
from types import TracebackType
from typing import Self

from aiohttp import web

_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
_Json = dict[str, object]


class ApiFault(StrEnum):
    """What happens to each request for a Lease, until it is switched off."""

    NONE = "none"
    HANG = "hang"  # never arrives, and nobody answers
    HANG_AFTER = "hang_after"  # is carried out, and nobody answers
    RESET = "reset"  # never arrives, and the connection breaks
    RESET_AFTER = "reset_after"  # is carried out, and the connection breaks
    CONFLICT = "conflict"  # 409 for each write
    SERVER_ERROR = "server_error"  # 500
    TOO_MANY = "too_many"  # 429
    FORBIDDEN = "forbidden"  # 403
    UNAUTHORIZED = "unauthorized"  # 401
    NONSENSE = "nonsense"  # 200, with something that is no Lease


class FakeLeaseApi:
    """The server. Switches may be set from any thread at any time."""

    def __init__(self) -> None:
        self.fault = ApiFault.NONE
        self.latency_seconds = 0.0
        self.tokens: set[str] | None = None
        """The bearer tokens that are known; None lets everybody in."""
        self.requests: list[str] = []
        """Method, path and query of each request, in order."""
        self.url = ""
        self._leases: dict[tuple[str, str], _Json] = {}
        self._version = 1000
        self._watchers: set[asyncio.Queue[_Json | None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake lease API", daemon=True)
        self._runner: web.AppRunner | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def lease(self, name: str, *, namespace: str = "default") -> _Json | None:
        """Return a copy of the Lease as it is stored, None if there is none."""
        return copy.deepcopy(self._leases.get((namespace, name)))

    def holder(self, name: str, *, namespace: str = "default") -> str | None:
        """Return the name in a Lease."""
        spec = _mapping((self.lease(name, namespace=namespace) or {}).get("spec"))
        return str(spec["holderIdentity"]) if "holderIdentity" in spec else None

    def edit(self, name: str, change: Callable[[_Json], None], *, namespace: str = "default") -> None:
        """Change a Lease as somebody else would."""

        def apply() -> None:
            lease = self._leases[namespace, name]
            change(lease)
            self._store((namespace, name), lease, event="MODIFIED")

        self._in_loop(apply)

    def delete(self, name: str, *, namespace: str = "default") -> None:
        """Delete a Lease."""

        def apply() -> None:
            lease = self._leases.pop((namespace, name))
            self._version += 1
            _mapping(lease["metadata"])["resourceVersion"] = str(self._version)
            self._tell("DELETED", lease)

        self._in_loop(apply)

    def end_watches(self) -> None:
        """Close every watch, as a restarting server does."""
        self._in_loop(self._close_watches)

    def watches(self) -> int:
        """Return how many watches are open."""
        return len(self._watchers)

    def fail_watches(self) -> None:
        """Send an error into every watch, as an API server does whose storage has trouble; kopf ends of it."""
        status: _Json = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "etcd trouble"}

        def send() -> None:
            for watcher in self._watchers:
                watcher.put_nowait({"type": "ERROR", "object": status})

        self._in_loop(send)

    def _in_loop(self, action: Callable[[], None]) -> None:
        async def act() -> None:
            action()

        asyncio.run_coroutine_threadsafe(act(), self._loop).result(10)

    async def _start(self) -> None:
        app = web.Application(middlewares=[self._switches])
        app.router.add_get("/apis", _groups)
        app.router.add_get("/api", _core)
        app.router.add_get("/api/v1", _core_resources)
        app.router.add_get("/apis/coordination.k8s.io/v1", _resources)
        app.router.add_get(_COLLECTION, self._list)
        app.router.add_post(_COLLECTION, self._create)
        app.router.add_get(f"{_COLLECTION}/{{name}}", self._get)
        app.router.add_put(f"{_COLLECTION}/{{name}}", self._replace)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        self._close_watches()
        if self._runner is not None:
            await self._runner.cleanup()

    def _close_watches(self) -> None:
        for watcher in self._watchers:
            watcher.put_nowait(None)

    @web.middleware
    async def _switches(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.rel_url}")
        if "/leases" not in request.path:
            return await handler(request)
        if self.latency_seconds:
            await asyncio.sleep(self.latency_seconds)
        fault = self.fault
        refusal = self._refusal(fault, request)
        if refusal is not None:
            return refusal
        if fault is ApiFault.RESET:
            return _broken(request)
        if fault is ApiFault.HANG:
            await asyncio.Event().wait()
        response = await handler(request)
        if fault is ApiFault.RESET_AFTER:
            return _broken(request)
        if fault is ApiFault.HANG_AFTER:
            await asyncio.Event().wait()
        return response

    def _refusal(self, fault: ApiFault, request: web.Request) -> web.Response | None:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if fault is ApiFault.UNAUTHORIZED or (self.tokens is not None and bearer not in self.tokens):
            return _status(401, "Unauthorized")
        if fault is ApiFault.FORBIDDEN:
            verb = {"GET": "get", "POST": "create", "PUT": "update"}[request.method]
            return _status(
                403,
                f'leases.coordination.k8s.io "x" is forbidden: User "system:serviceaccount:default:dispatcher" cannot '
                f'{verb} resource "leases" in API group "coordination.k8s.io" in the namespace "default"',
            )
        if fault is ApiFault.SERVER_ERROR:
            return _status(500, "etcdserver: request timed out")
        if fault is ApiFault.TOO_MANY:
            return _status(429, "too many requests, please try again later")
        if fault is ApiFault.NONSENSE:
            return web.Response(text="<html>a proxy's page</html>", content_type="text/html")
        if fault is ApiFault.CONFLICT and request.method != "GET":
            return _status(409, "the object has been modified; please apply your changes to the latest version")
        return None

    async def _get(self, request: web.Request) -> web.Response:
        lease = self._leases.get(_key(request, request.match_info["name"]))
        return web.json_response(lease) if lease else _status(404, "not found")

    async def _create(self, request: web.Request) -> web.Response:
        body = _mapping(await request.json())
        key = _key(request, str(_mapping(body["metadata"])["name"]))
        if (problem := _problem(body)) is not None:
            return problem
        if key in self._leases:
            return _status(409, f'leases.coordination.k8s.io "{key[1]}" already exists')
        metadata = {**_mapping(body["metadata"]), "namespace": key[0], "uid": secrets.token_hex(16)}
        return web.json_response(self._store(key, {**body, "metadata": metadata}, event="ADDED"), status=201)

    async def _replace(self, request: web.Request) -> web.Response:
        body = _mapping(await request.json())
        key = _key(request, request.match_info["name"])
        sent = _mapping(body["metadata"])
        if (problem := _problem(body)) is not None:
            return problem
        lease = self._leases.get(key)
        if lease is None:
            if "uid" in sent:
                return _status(409, "Precondition failed: UID in precondition, object: (deleted)")
            return web.json_response(self._store(key, {**body}, event="ADDED"), status=201)
        stored = _mapping(lease["metadata"])
        if "resourceVersion" not in sent:
            return _status(422, "metadata.resourceVersion: must be specified for an update")
        if sent["resourceVersion"] != stored["resourceVersion"] or sent.get("uid", stored["uid"]) != stored["uid"]:
            return _status(409, "the object has been modified; please apply your changes to the latest version")
        return web.json_response(self._store(key, body, event="MODIFIED"))

    def _store(self, key: tuple[str, str], lease: _Json, *, event: str) -> _Json:
        self._version += 1
        stored = {**lease, "metadata": {**_mapping(lease["metadata"]), "resourceVersion": str(self._version)}}
        self._leases[key] = stored
        self._tell(event, stored)
        return stored

    def _tell(self, event: str, lease: _Json) -> None:
        for watcher in self._watchers:
            watcher.put_nowait({"type": event, "object": copy.deepcopy(lease)})

    async def _list(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        if request.query.get("watch") == "true":
            return await self._watch(request, wanted)
        items = [lease for (_, name), lease in self._leases.items() if wanted in ("", name)]
        return web.json_response(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "LeaseList",
                "metadata": {"resourceVersion": str(self._version)},
                "items": items,
            }
        )

    async def _watch(self, request: web.Request, wanted: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        events: asyncio.Queue[_Json | None] = asyncio.Queue()
        self._watchers.add(events)
        try:
            while (event := await events.get()) is not None:
                name = _mapping(_mapping(event["object"]).get("metadata")).get("name")
                if event["type"] == "ERROR" or wanted in ("", name):
                    await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self._watchers.discard(events)
        return response


def _key(request: web.Request, name: str) -> tuple[str, str]:
    return request.match_info["namespace"], name


def _mapping(value: object) -> _Json:
    return value if isinstance(value, dict) else {}


def _problem(body: _Json) -> web.Response | None:
    spec = _mapping(body.get("spec"))
    for name in ("acquireTime", "renewTime"):
        moment = spec.get(name)
        if moment is not None and not _MICRO_TIME.fullmatch(str(moment)):
            return _status(400, f"parsing time {moment!r} as 2006-01-02T15:04:05.000000Z07:00: cannot parse")
    seconds = spec.get("leaseDurationSeconds")
    if not isinstance(seconds, int) or seconds <= 0:
        return _status(422, "spec.leaseDurationSeconds: must be greater than 0")
    return None


def _status(code: int, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return web.json_response(body, status=code)


def _broken(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _groups(_: web.Request) -> web.Response:
    version = {"groupVersion": "coordination.k8s.io/v1", "version": "v1"}
    group = {"name": "coordination.k8s.io", "versions": [version], "preferredVersion": version}
    return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})


async def _core(_: web.Request) -> web.Response:
    return web.json_response({"kind": "APIVersions", "versions": ["v1"]})


async def _core_resources(_: web.Request) -> web.Response:
    # kopf does not begin to watch before it knows what a namespace is.
    namespace = {
        "name": "namespaces",
        "singularName": "namespace",
        "namespaced": False,
        "kind": "Namespace",
        "verbs": ["get", "list", "watch"],
    }
    return web.json_response({"kind": "APIResourceList", "groupVersion": "v1", "resources": [namespace]})


async def _resources(_: web.Request) -> web.Response:
    lease = {
        "name": "leases",
        "singularName": "lease",
        "namespaced": True,
        "kind": "Lease",
        "verbs": ["create", "get", "list", "update", "watch"],
    }
    body = {"kind": "APIResourceList", "groupVersion": "coordination.k8s.io/v1", "resources": [lease]}
    return web.json_response(body)

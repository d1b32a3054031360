"""Count and time requests, give each an id, and log it at debug."""

import re
from time import perf_counter
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sweephand.context import observing_enqueues
from sweephand.telemetry import ApiMetrics
from sweephand.web.routes import route_template

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestMetrics:
    """An ASGI middleware around everything else, so that refused and failed requests count too."""

    def __init__(self, app: ASGIApp, *, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = perf_counter()
        # An exception without an answer is one that the server answers with 500.
        status = 500
        request_id = _request_id(scope)

        async def send_noticed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", request_id)]}
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request_id=request_id.decode()),
            observing_enqueues(self._count_enqueue),
        ):
            try:
                await self._app(scope, receive, send_noticed)
            finally:
                self._count(scope, status=status, duration_seconds=perf_counter() - started_at)

    def _count_enqueue(self, queue: str, is_duplicate: bool) -> None:  # noqa: FBT001 - the form of an EnqueueObserver
        self._metrics.count_enqueue(queue, is_duplicate=is_duplicate)

    def _count(self, scope: Scope, *, status: int, duration_seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = route_template(scope)
        self._metrics.requests_total.labels(method, route, str(status)).inc()
        self._metrics.request_duration_seconds.labels(method, route).observe(duration_seconds)
        structlog.get_logger().debug(
            "request_answered",
            method=scope["method"],
            path=scope["path"],
            status=status,
            duration_seconds=round(duration_seconds, 6),
        )


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and isinstance(value, bytes) and _REQUEST_ID.fullmatch(value):
            return value
    return uuid4().hex.encode()

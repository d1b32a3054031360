"""The API process: serve an application's HTTP interface until a signal, ready while the database is usable."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Generator
from contextlib import ExitStack
from threading import Timer
from time import monotonic
from typing import NoReturn

import structlog
import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.types import ASGIApp

from sweephand.app import App
from sweephand.model.errors import AppError, SettingsError
from sweephand.settings import Settings
from sweephand.telemetry import ApiMetrics, DatabaseMetrics, create_registry
from sweephand.web.database_watch import DatabaseWatch
from sweephand.web.endpoints import serve_endpoints
from sweephand.web.problems import install_problem_handlers
from sweephand.web.request_metrics import RequestMetrics
from sweephand.web.routes import UNMATCHED, declared_routes

# A load balancer reuses connections for up to a minute; the side that closes first must be the balancer.
_KEEP_ALIVE_SECONDS = 75
_LIVENESS_SECONDS = 30
# After the grace, what still holds the process up is not going to end: 12 in architecture.md.
_EXIT_AFTER_GRACE_SECONDS = 5


def run(app: App, settings: Settings) -> int:
    """Serve the application's API and the endpoints until SIGTERM or SIGINT; return the exit code.

    Requests that run at the signal have `grace_seconds` to end. A database that is down makes the process not ready;
    it stays up and retries.

    Raises:
        AppError: The application's `http` does not make an ASGI application.
        SettingsError: A port cannot be had.
    """
    registry = create_registry(settings)
    api = _make_api(app)
    served = RequestMetrics(api, metrics=_declared_metrics(app, api=api, registry=registry))
    with ExitStack() as closing:
        listener = closing.enter_context(_listen(settings.api_host, port=settings.api_port))
        server = _Server(
            uvicorn.Config(
                served,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="auto",
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=max(1, round(settings.grace_seconds)),
            ),
            grace_seconds=settings.grace_seconds,
        )
        watch = DatabaseWatch(
            settings.database_url,
            application_name="sweephand api",
            metrics=DatabaseMetrics.create(registry),
            prepare=settings.prepared_statements,
        )
        closing.callback(watch.close)
        endpoints = serve_endpoints(
            settings.metrics_port,
            registry=registry,
            is_live=server.liveness_problem,
            is_ready=lambda: server.readiness_problem() or watch.problem(),
            host=settings.api_host,
        )
        closing.callback(endpoints.close)
        structlog.get_logger().info("api_started", app=app.name, url=_url(listener), metrics_port=endpoints.port)
        is_served = _serve(server, listener=listener)
        structlog.get_logger().info("api_stopped", app=app.name)
    return 0 if is_served else 1


def _serve(server: "_Server", *, listener: socket.socket) -> bool:
    try:
        asyncio.run(server.serve(sockets=[listener]))
    except SystemExit:
        # uvicorn's way of saying that the application's own start failed; its traceback is in the log.
        return False
    return server.started


class _Server(uvicorn.Server):
    """uvicorn's server with our signals: exit code 0 after the first one, 1 at once on a second."""

    def __init__(self, config: uvicorn.Config, *, grace_seconds: float) -> None:
        super().__init__(config)
        self._grace_seconds = grace_seconds
        self._ticked_at = monotonic()

    def readiness_problem(self) -> str | None:
        """Return why requests should go elsewhere, as far as this server knows."""
        if self.should_exit:
            return "the process is stopping"
        return None if self.started else "the application is starting"

    def liveness_problem(self) -> str | None:
        """Return why the process should be restarted: its event loop stands still."""
        if not self.started or self.should_exit:
            # The loop's turns are only counted between the start, which may wait for something, and the stop.
            return None
        silent_seconds = monotonic() - self._ticked_at
        return f"the event loop is stuck for {silent_seconds:.0f} s" if silent_seconds > _LIVENESS_SECONDS else None

    async def on_tick(self, counter: int) -> bool:
        """Notice that the loop goes round."""
        self._ticked_at = monotonic()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals while serving; uvicorn's own way raises them again and so changes the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _stop(self, number: signal.Signals) -> None:
        if self.should_exit:
            # Not uvicorn's force_exit: that one still waits for open connections.
            _exit_now("stop_forced")
        structlog.get_logger().info("stop_requested", signal=number.name, grace_seconds=self._grace_seconds)
        self.should_exit = True
        last_resort = Timer(self._grace_seconds + _EXIT_AFTER_GRACE_SECONDS, _exit_now, args=("stop_timed_out",))
        last_resort.daemon = True
        last_resort.start()


def _exit_now(event: str) -> NoReturn:
    structlog.get_logger().error(event)
    os._exit(1)


def _make_api(app: App) -> ASGIApp:
    if app.http is None:
        structlog.get_logger().warning(
            "api_has_no_routes", app=app.name, hint="give App(..., http=...) a callable that returns an ASGI application"
        )
        api = FastAPI(title=app.name)
        install_problem_handlers(api)
        return api
    try:
        made = app.http()
    except Exception as error:
        raise AppError(f"app {app.name}: its http= raised {type(error).__name__}: {error}") from error
    if not callable(made):
        raise AppError(f"app {app.name}: its http= returned {type(made).__name__}; it must return an ASGI application")
    return made


def _declared_metrics(app: App, *, api: ASGIApp, registry: CollectorRegistry) -> ApiMetrics:
    metrics = ApiMetrics.create(registry)
    for queue in app.queues():
        metrics.declare_queue(queue)
    metrics.declare_route("GET", route=UNMATCHED)
    if isinstance(api, Starlette):
        for method, template in declared_routes(api.routes):
            metrics.declare_route(method, route=template)
    return metrics


@contextlib.contextmanager
def _listen(host: str, *, port: int) -> Generator[socket.socket, None, None]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        # create_server puts the address, which is said already, in brackets behind the reason.
        reason = str(error.strerror).partition(" (")[0]
        raise SettingsError(f"SWEEPHAND_API_PORT={port}: cannot listen on {host}:{port}: {reason}") from error
    with listener:
        # asyncio sets it only on sockets that name their protocol, and these do not: without it, an answer of two packets
        # waits 40 ms for the client's delayed acknowledgement. Accepted sockets inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"

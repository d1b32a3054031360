"""Serve /livez, /readyz and /metrics from a thread of the process that they tell about.

The worker and the dispatcher serve nothing else, so this needs no more than the standard library's WSGI server.
"""

import json
import socket
import socketserver
from collections.abc import Callable, Iterable
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app

from sweephand.model.errors import SettingsError

Check = Callable[[], str | None]
"""Returns None when all is well, else the reason why not, for a person to read. Called from several threads."""

# A prober that opens a connection and says nothing must not hold its thread for ever.
_IDLE_TIMEOUT_SECONDS = 10


class EndpointServer:
    """A running server of the endpoints. Close it when the process ends."""

    def __init__(self, server: WSGIServer) -> None:
        self._server = server
        self._thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="endpoints", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port that it listens on: the one asked for, or the one that 0 became."""
        return self._server.server_port

    def close(self) -> None:
        """Stop answering and free the port. Closing twice is fine."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve_endpoints(
    port: int,
    *,
    registry: CollectorRegistry,
    is_live: Check,
    is_ready: Check,
    host: str = "0.0.0.0",  # noqa: S104 - probes and scrapes come from outside of the pod
) -> EndpointServer:
    """Serve the endpoints on a port (0: any free one) until the result is closed.

    /livez and /readyz answer 200 when their check returns None, and 503 with the reason in the body otherwise; a check
    that raises is a reason too.

    Raises:
        SettingsError: The port cannot be had.
    """
    try:
        server = _server_class(host)((host, port), _QuietHandler)
    except OSError as error:
        raise SettingsError(f"SWEEPHAND_METRICS_PORT={port}: cannot listen on {host}:{port}: {error.strerror}") from error
    server.set_app(_application(registry, is_live=is_live, is_ready=is_ready))
    endpoints = EndpointServer(server)
    structlog.get_logger().info("endpoints_served", metrics_port=endpoints.port)
    return endpoints


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """One thread a request, so that a slow check never delays a scrape or the other probe."""

    daemon_threads = True
    # Waiting for a silent client's thread would hold up the process's end.
    block_on_close = False

    def server_bind(self) -> None:
        """Bind without the reverse look-up of the host's name, which takes seconds where no name server answers."""
        socketserver.TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - socketserver's names
        """Say nothing of clients that went away in the middle of an answer."""
        structlog.get_logger().debug("endpoint_client_lost", client=str(client_address), exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server_class(host: str) -> type[_Server]:
    return _Server6 if ":" in host else _Server


class _QuietHandler(WSGIRequestHandler):
    timeout = _IDLE_TIMEOUT_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        structlog.get_logger().debug("endpoint_answered", request=format % args)


def _application(registry: CollectorRegistry, *, is_live: Check, is_ready: Check) -> WSGIApplication:
    metrics: WSGIApplication = make_wsgi_app(registry)

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/livez":
                return _answer_check(is_live, name="livez", start_response=start_response)
            case "/readyz":
                return _answer_check(is_ready, name="readyz", start_response=start_response)
            case "/metrics":
                return metrics(environ, start_response)
            case _:
                return _answer(
                    "404 Not Found",
                    body={"status": "no such page: /livez, /readyz and /metrics are served"},
                    start_response=start_response,
                )

    return application


def _answer_check(check: Check, *, name: str, start_response: StartResponse) -> Iterable[bytes]:
    try:
        reason = check()
    except Exception as error:  # noqa: BLE001 - the edge of the endpoint: whatever a check raises, the prober gets an answer
        structlog.get_logger().exception("check_failed", check=name)
        reason = f"the check failed: {type(error).__name__}"
    if reason is None:
        return _answer("200 OK", body={"status": "ok"}, start_response=start_response)
    return _answer("503 Service Unavailable", body={"status": "unavailable", "reason": reason}, start_response=start_response)


def _answer(status: str, *, body: dict[str, str], start_response: StartResponse) -> Iterable[bytes]:
    content = json.dumps(body).encode() + b"\n"
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
    return [content]

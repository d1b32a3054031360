"""The endpoints for probes and scrapes, served from a thread."""

import socket
from collections.abc import Iterator
from threading import Event

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from sweephand import SettingsError
from sweephand.web.endpoints import Check, EndpointServer, serve_endpoints


class Process:
    """Stand for the process that is asked: what its two checks say can be changed."""

    def __init__(self) -> None:
        self.live: Check = lambda: None
        self.ready: Check = lambda: None
        self.registry = CollectorRegistry()

    def is_live(self) -> str | None:
        return self.live()

    def is_ready(self) -> str | None:
        return self.ready()


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def server(process: Process) -> Iterator[EndpointServer]:
    started = serve_endpoints(
        0,
        registry=process.registry,
        is_live=process.is_live,
        is_ready=process.is_ready,
        host="127.0.0.1",
    )
    yield started
    started.close()


def _get(server: EndpointServer, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{server.port}{path}", timeout=5)


def test_all_well_is_200(server: EndpointServer) -> None:
    assert _get(server, "/livez").json() == {"status": "ok"}
    assert _get(server, "/readyz").json() == {"status": "ok"}


def test_a_reason_is_503_with_the_reason(server: EndpointServer, process: Process) -> None:
    process.ready = lambda: "PostgreSQL does not answer"

    answer = _get(server, "/readyz")

    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "reason": "PostgreSQL does not answer"}
    assert _get(server, "/livez").status_code == 200


def test_a_check_that_raises_is_a_reason(server: EndpointServer, process: Process) -> None:
    def check() -> str | None:
        raise RuntimeError("swordfish")

    process.live = check

    answer = _get(server, "/livez")

    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "reason": "the check failed: RuntimeError"}


def test_a_slow_check_delays_neither_the_other_probe_nor_a_scrape(server: EndpointServer, process: Process) -> None:
    release = Event()
    entered = Event()

    def check() -> str | None:
        entered.set()
        release.wait(10)
        return None

    process.ready = check
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert entered.wait(5)

        assert _get(server, "/livez").status_code == 200
        assert _get(server, "/metrics").status_code == 200
        release.set()
        assert connection.recv(64).startswith(b"HTTP/1.0 200")


def test_a_silent_client_does_not_hold_up_the_others_or_the_end(server: EndpointServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)):
        assert _get(server, "/livez").status_code == 200

        server.close()


def test_metrics_are_those_of_the_registry(server: EndpointServer, process: Process) -> None:
    Counter("ticks", "Ticks.", registry=process.registry).inc(3)

    answer = _get(server, "/metrics")

    assert answer.headers["content-type"].startswith("text/plain")
    assert "ticks_total 3.0" in answer.text


def test_other_paths_are_404(server: EndpointServer) -> None:
    assert _get(server, "/").status_code == 404
    assert _get(server, "/metrics/x").status_code == 404


def test_a_taken_port_is_named(server: EndpointServer) -> None:
    with pytest.raises(SettingsError, match=rf"SWEEPHAND_METRICS_PORT={server.port}: cannot listen on 127\.0\.0\.1"):
        serve_endpoints(
            server.port,
            registry=CollectorRegistry(),
            is_live=lambda: None,
            is_ready=lambda: None,
            host="127.0.0.1",
        )


def test_it_can_be_closed_twice(server: EndpointServer) -> None:
    server.close()
    server.close()

    with pytest.raises(httpx.ConnectError):
        _get(server, "/livez")

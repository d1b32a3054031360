"""The API process: ready while the database is usable, counted, and stopped with grace."""

import signal
import socket
from threading import Thread

import httpx

from sweephand.postgres.embedded import EmbeddedPostgres
from sweephand.postgres.migrate import migrate
from tests.support.processes import Commands
from tests.support.waiting import until
from tests.web.servers import start_api


def test_it_serves_the_application_and_is_ready(commands: Commands) -> None:
    api = start_api(commands)

    api.wait_until_ready()

    assert httpx.get(f"{api.url}/api/v1/products/7").json() == {"id": 7, "page": 1}
    assert httpx.get(f"{api.endpoints_url}/livez").status_code == 200
    assert "sweephand_schema_version_applied 1.0" in api.metrics()


def test_an_application_without_http_still_answers_in_problems(commands: Commands) -> None:
    api = start_api(commands, app="tests.web.apps:bare")

    assert "api_has_no_routes" in api.command.log
    assert httpx.get(f"{api.url}/anything").headers["content-type"] == "application/problem+json"


def test_an_http_factory_that_raises_is_one_line_and_exit_1(commands: Commands) -> None:
    command = commands.start("api", app="tests.web.apps:refusing")

    assert command.wait() == 1
    assert command.log == "Error: app refusing: its http= raised ValueError: no template directory\n"


def test_an_application_whose_start_fails_ends_with_exit_1(commands: Commands) -> None:
    command = commands.start("api", app="tests.web.apps:not_starting")

    assert command.wait() == 1
    assert "RuntimeError: no cache server" in command.log


def test_a_taken_port_is_one_line_and_exit_1(commands: Commands) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:  # noqa: S104 - the address that the API takes
        port = taken.getsockname()[1]

        command = commands.start("api", app="tests.web.apps:app", env={"SWEEPHAND_API_PORT": str(port)})

        assert command.wait() == 1
    expected = f"Error: SWEEPHAND_API_PORT={port}: cannot listen on 0.0.0.0:{port}: Address already in use\n"
    assert command.log == expected


def test_without_a_database_it_stays_up_and_says_why(commands: Commands) -> None:
    secret_url = "postgresql://shop:swordfish@127.0.0.1:1/none"

    api = start_api(commands, env={"DATABASE_URL": secret_url})
    until(lambda: "Connection refused" in api.readiness().text, message="/readyz says why")

    assert api.readiness().status_code == 503
    assert httpx.get(f"{api.endpoints_url}/livez").status_code == 200
    assert httpx.get(f"{api.url}/api/v1/products/7").status_code == 200
    assert "swordfish" not in api.command.log + api.readiness().text


def test_without_the_schema_it_is_not_ready_until_it_is_migrated(commands: Commands, empty_database_url: str) -> None:
    api = start_api(commands, env={"DATABASE_URL": empty_database_url})
    until(lambda: "sweephand migrate" in api.readiness().text, message="/readyz says what to run")

    migrate(empty_database_url)

    api.wait_until_ready()


def test_it_is_ready_again_after_the_database_was_away_or_hung(commands: Commands, own_postgres: EmbeddedPostgres) -> None:
    url = own_postgres.start()
    migrate(url)
    api = start_api(commands, env={"DATABASE_URL": url})
    api.wait_until_ready()

    own_postgres.stop(is_crash=True)
    until(lambda: api.readiness().status_code == 503, message="/readyz notices that the database is away")
    own_postgres.start()

    api.wait_until_ready()
    assert api.command.is_running()


def test_a_database_that_takes_no_writes_is_seen(commands: Commands, own_postgres: EmbeddedPostgres) -> None:
    url = own_postgres.start()
    migrate(url)

    api = start_api(commands, env={"DATABASE_URL": f"{url}&options=-c%20default_transaction_read_only%3Don"})

    api.wait_until_ready()
    until(lambda: "sweephand_db_read_only 1.0" in api.metrics(), message="the gauge shows it")


def test_requests_are_counted_by_template_never_by_path(commands: Commands) -> None:
    api = start_api(commands)
    before = api.metrics()

    for path in ("/api/v1/products/7", "/api/v1/products/8", "/nothing/9", "/broken"):
        httpx.get(f"{api.url}{path}")
    httpx.request("BREW", f"{api.url}/nothing")

    template = 'method="GET",route="/api/v1/products/{product_id}"'
    after = api.metrics()
    assert f'sweephand_api_requests_total{{code="200",{template}}} 0.0' in before
    assert f'sweephand_api_requests_total{{code="200",{template}}} 2.0' in after
    assert f"sweephand_api_request_duration_seconds_count{{{template}}} 2.0" in after
    assert 'sweephand_api_requests_total{code="404",method="other",route="other"} 1.0' in after
    assert 'sweephand_api_requests_total{code="500",method="GET",route="/broken"} 1.0' in after
    assert "/nothing" not in after
    assert "/products/7" not in after
    assert 'sweephand_api_enqueue_total{outcome="duplicate",queue="default"} 0.0' in before


def test_enqueues_of_requests_are_counted(commands: Commands) -> None:
    api = start_api(commands)

    outcomes = [httpx.post(f"{api.url}/products/7/publish").json() for _ in range(3)]

    assert [outcome["is_duplicate"] for outcome in outcomes] == [False, True, True]
    metrics = api.metrics()
    assert 'sweephand_api_enqueue_total{outcome="enqueued",queue="default"} 1.0' in metrics
    assert 'sweephand_api_enqueue_total{outcome="duplicate",queue="default"} 2.0' in metrics


def test_a_request_keeps_its_id_and_shows_it_in_its_log_lines(commands: Commands) -> None:
    api = start_api(commands, env={"SWEEPHAND_LOG_LEVEL": "debug"})

    given = httpx.get(f"{api.url}/broken", headers={"X-Request-Id": "r-1"})
    forged = httpx.get(f"{api.url}/broken", headers={"X-Request-Id": "a b"})

    assert given.headers["x-request-id"] == "r-1"
    assert len(forged.headers["x-request-id"]) == 32
    assert "request_id=r-1" in api.command.wait_for_log("request_failed")
    assert "request_answered" in api.command.wait_for_log("status=500")


def test_sigterm_lets_a_request_end_and_exits_0(commands: Commands) -> None:
    api = start_api(commands)
    answers: list[str] = []
    request = Thread(target=lambda: answers.append(httpx.get(f"{api.url}/slow/1.5", timeout=10).text))
    request.start()
    until(lambda: _connections(api.url) > 0, message="the request is under way")

    api.command.kill(signal.SIGTERM)
    api.command.wait_for_log("stop_requested")
    readiness = api.readiness()

    assert readiness.status_code == 503
    assert "stopping" in readiness.text
    assert api.command.wait() == 0
    request.join()
    assert answers == ["waited"]


def test_a_request_longer_than_the_grace_does_not_hold_the_exit(commands: Commands) -> None:
    api = start_api(commands, env={"SWEEPHAND_GRACE_SECONDS": "1"})
    with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /slow/3600 HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: _connections(api.url) > 0, message="the request is under way")

        api.command.kill(signal.SIGTERM)

        assert api.command.wait() == 0


def test_a_second_signal_ends_it_at_once(commands: Commands) -> None:
    api = start_api(commands)
    with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /slow/3600 HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: _connections(api.url) > 0, message="the request is under way")
        api.command.kill(signal.SIGTERM)
        api.command.wait_for_log("stop_requested")

        api.command.kill(signal.SIGINT)

        assert api.command.wait() == 1
        assert "stop_forced" in api.command.log


def _connections(url: str) -> int:
    """Return how many established connections the API's port has, as the kernel counts them."""
    port = f"{int(url.rpartition(':')[2]):04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:  # noqa: PTH123 - a file of the kernel
        return sum(1 for line in table if f":{port} " in line.split()[1] + " " and line.split()[3] == "01")

"""Start the API command for a test and find its ports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until


@dataclass(frozen=True, slots=True)
class RunningApi:
    """Be an API process and where it listens."""

    command: RunningCommand
    url: str
    endpoints_url: str

    def readiness(self) -> httpx.Response:
        """Return what /readyz answers."""
        return httpx.get(f"{self.endpoints_url}/readyz", timeout=5)

    def wait_until_ready(self) -> None:
        """Wait for /readyz to answer 200."""
        until(lambda: self.readiness().status_code == 200, message=f"/readyz answers 200, not {self.readiness().text}")

    def metrics(self) -> str:
        """Return what /metrics answers."""
        return httpx.get(f"{self.endpoints_url}/metrics", timeout=5).text


def start_api(commands: Commands, *, app: str = "tests.web.apps:app", env: Mapping[str, str] | None = None) -> RunningApi:
    """Start the API and wait until it listens."""
    command = commands.start("api", app=app, env=env)
    line = command.wait_for_log("api_started")
    url = re.search(r"url=(\S+)", line)
    port = re.search(r"metrics_port=(\d+)", line)
    if url is None or port is None:
        raise AssertionError(line)
    until(lambda: _answers(url[1]), message="the API answers")
    return RunningApi(command=command, url=url[1], endpoints_url=f"http://127.0.0.1:{port[1]}")


def _answers(url: str) -> bool:
    try:
        httpx.get(url, timeout=5)
    except httpx.TransportError:
        return False
    return True

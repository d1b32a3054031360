"""What the demo asks of the application: over HTTP, and through the command that makes products stuck."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import Self

import httpx

from sweephand.model.errors import SweephandError

_COMMAND_SECONDS = 30
_IDS = re.compile(r"ids (\d+) to (\d+)")


@dataclass(frozen=True, slots=True)
class Created:
    """An answer to POST: the product's id, the status and how long it took."""

    product_id: int
    status: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Stuck:
    """What the command said, and the ids of the products that it inserted."""

    command: str
    said: str
    product_ids: tuple[int, ...]


class Shop:
    """A client of the running application. A context manager: it closes its connections at the end."""

    def __init__(self, app_target: str, *, api_url: str, database_url: str) -> None:
        self._package = app_target.partition(":")[0].rpartition(".")[0]
        self._database_url = database_url
        self._client = httpx.Client(base_url=f"{api_url}/api/v1", timeout=10, trust_env=False)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self._client.close()

    def create_product(self, name: str, *, price_cents: int) -> Created:
        """POST a product.

        Raises:
            SweephandError: the application did not create it.
        """
        began = perf_counter()
        body = {"name": name, "description": "Made by the demo", "price_cents": price_cents}
        answer = self._answer("POST", "/products", body=body)
        milliseconds = (perf_counter() - began) * 1000
        return Created(product_id=answer.json()["id"], status=answer.status_code, milliseconds=milliseconds)

    def published_at(self, product_id: int) -> datetime | None:
        """GET a product and return when it was published; None if it is not.

        Raises:
            SweephandError: the application does not show it.
        """
        moment = self._answer("GET", f"/products/{product_id}").json()["published_at"]
        return None if moment is None else datetime.fromisoformat(moment)

    def make_stuck(self, count: int) -> Stuck:
        """Run the application's own command for it.

        Raises:
            SweephandError: the command failed.
        """
        command = ["python", "-m", f"{self._package}.stuck", "--count", str(count)]
        done = subprocess.run(
            [sys.executable, *command[1:]],
            env={**os.environ, "DATABASE_URL": self._database_url},
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        ids = _IDS.search(done.stdout)
        if done.returncode != 0 or ids is None:
            raise SweephandError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
        return Stuck(
            command=" ".join(command),
            said=done.stdout.strip(),
            product_ids=tuple(range(int(ids[1]), int(ids[2]) + 1)),
        )

    def _answer(self, method: str, path: str, *, body: object = None) -> httpx.Response:
        try:
            return self._client.request(method, path, json=body).raise_for_status()
        except httpx.HTTPError as error:
            raise SweephandError(f"the application failed: {method} {path}: {error}") from error

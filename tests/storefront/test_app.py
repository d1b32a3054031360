"""What loading the shop costs the processes that only run its jobs and sweeps."""

import subprocess
import sys

import pytest

_UNNEEDED = {"alembic", "fastapi", "httpx", "smtplib", "starlette", "uvicorn", "sqlalchemy.orm"}


@pytest.mark.parametrize(
    ("process", "unneeded"),
    [
        ("sweephand.worker.process", _UNNEEDED | {"kopf", "aiohttp"}),
        ("sweephand.dispatcher.process, sweephand.dispatcher.operator", _UNNEEDED | {"dramatiq"}),
    ],
)
def test_a_process_that_serves_no_http_loads_no_web_framework(process: str, unneeded: set[str]) -> None:
    script = f"import sys, sweephand.cli.start, {process}, storefront.app; storefront.app.create_app(); print(*sys.modules)"
    environment = {"DATABASE_URL": "postgresql://shop@db/shop"}

    loaded = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stdout

    assert unneeded & set(loaded.split()) == set()

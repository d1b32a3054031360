"""The whole demo, with its real processes."""

import os
import re
import subprocess
import sys

import pytest

from sweephand.demo import run


@pytest.mark.timeout(120)
def test_in_a_pipe_the_demo_ends_by_itself_with_everything_published(database_url: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database_url}

    told = subprocess.run(
        [sys.executable, "-m", "sweephand", "demo"], env=environment, capture_output=True, text=True, check=False
    )

    assert told.returncode == 0, told.stdout + told.stderr
    assert "\x1b" not in told.stdout
    assert "dispatcher | dispatched sweep=stuck_publications tick=" in told.stdout
    assert re.search(r"created over HTTP +5 +5\n", told.stdout)
    assert re.search(r"stuck +12 +12\n", told.stdout)
    sums = re.search(r"sum +(\d+) +(\d+)\n", told.stdout)
    assert sums is not None
    assert int(sums[1]) == 12
    assert int(sums[2]) > 0
    assert "Where to look next" in told.stdout


@pytest.mark.timeout(120)
def test_products_left_unpublished_make_the_demo_fail(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)

    code = run("storefront.app:create_app", keep=False, deadline_seconds=0)

    assert code == 1
    assert "17 products are still not published: " in capsys.readouterr().out

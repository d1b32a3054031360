"""The whole demo, with its real processes."""

import os
import re
import subprocess
import sys
from io import StringIO

import pytest
from rich.console import Console

from sweephand import SweephandError
from sweephand.demo import run
from sweephand.demo.lines import read_line
from sweephand.demo.screen import Screen


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


@pytest.mark.timeout(120)
def test_a_process_that_does_not_start_ends_the_demo_with_its_lines(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)

    with pytest.raises(SweephandError, match="migrate ended with exit code 1"):
        run("storefront.nowhere:app", keep=False)

    assert "migrate | Error: --app: no module storefront.nowhere" in capsys.readouterr().out


def test_a_terminal_shows_bars_and_wraps_what_it_tells() -> None:
    output = StringIO()
    terminal = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "40", "LINES": "20"}
    screen = Screen(Console(file=output, force_terminal=True, highlight=False, color_system=None, _environ=terminal))
    line = read_line("dispatcher", "2026-11-30T17:06:37.022Z info dispatched sweep=stuck_publications enqueued=5")

    screen.log(line)
    with screen.bars() as bars:
        bars.add("stuck", total=12).move(7)

    shown = output.getvalue()
    assert " 7 of 12 published" in shown
    assert "   dispatcher | dispatched\n                sweep=stuck_publications\n                enqueued=5" in shown

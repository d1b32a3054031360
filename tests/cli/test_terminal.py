"""What the operators' commands look like on a real terminal, narrow and wide, and in a pipe."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

import psycopg
import pytest
from rich.cells import cell_len

from tests.support.jobs import insert_job, insert_worker, open_connection
from tests.support.processes import REPOSITORY
from tests.support.sweeps import insert_leader, insert_sweep, insert_tick

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LONG = "ValueError: the warehouse in 東京 has no stock of this product, and nobody knows when it will have some again, if ever"


@pytest.fixture
def filled(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as opened:
        insert_leader(opened, holder="dispatcher-7d9f8c6b5-x2x4z")
        insert_sweep(opened, "stuck_publications_of_a_very_long_name")
        insert_tick(opened, "stuck_publications_of_a_very_long_name", outcome="error", error=_LONG)
        insert_worker(opened)
        job_id = insert_job(
            opened, "publish_product", args={"product_id": 2**60, "note": _LONG}, state="discarded", finished_ago_seconds=9
        )
        opened.execute(
            "INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome, error, worker_name) "
            "VALUES (%s, 1, now() - interval '9 s', now(), 'discarded', %s, 'worker-6f7d8c9b4-abcde')",
            [job_id, _LONG],
        )
        opened.execute(
            "INSERT INTO sweephand.queue (name, paused_at, paused_by, paused_note) VALUES ('mail', now(), 'ana@example', %s)",
            [_LONG],
        )
        yield opened


def _environment(database_url: str, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "DATABASE_URL": database_url, "TERM": "xterm-256color", "PYTHONPATH": str(REPOSITORY), **more}


def _on_terminal(width: int, *arguments: str, database_url: str, **more: str) -> list[str]:
    """Return the lines that a command writes to a terminal of this width, with their colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    command = [sys.executable, "-m", "sweephand", *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=_environment(database_url, **more), cwd=REPOSITORY
    )
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 65_536):
            written += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors.decode()
    return written.decode().replace("\r\n", "\n").splitlines()


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_table_is_wider_than_the_terminal(database_url: str, width: int) -> None:
    for arguments in (["sweeps", "list"], ["sweeps", "ticks"], ["jobs", "list"], ["jobs", "failed"], ["queues", "list"]):
        lines = [_STYLE.sub("", line) for line in _on_terminal(width, *arguments, database_url=database_url)]

        assert len(lines) >= 2
        assert max(cell_len(line) for line in lines[:2]) <= width, "\n".join(lines)


@pytest.mark.usefixtures("filled")
def test_a_wide_terminal_shows_more_than_a_narrow_one(database_url: str) -> None:
    narrow, wide = (
        _STYLE.sub("", _on_terminal(width, "jobs", "failed", database_url=database_url)[0]).split() for width in (80, 160)
    )

    assert narrow == ["ID", "KIND", "STATE", "WHEN", "LAST", "ERROR"]
    assert wide == ["ID", "KIND", "QUEUE", "STATE", "ATTEMPT", "WHEN", "ARGUMENTS", "LAST", "ERROR"]


@pytest.mark.usefixtures("filled")
def test_states_are_coloured_unless_that_is_not_wanted(database_url: str) -> None:
    coloured = _on_terminal(120, "jobs", "list", database_url=database_url)
    plain = _on_terminal(120, "jobs", "list", database_url=database_url, NO_COLOR="1")

    assert "\x1b[31mdiscarded\x1b[0m" in coloured[1]
    assert "\x1b[31m" not in plain[1]


@pytest.mark.usefixtures("filled")
def test_a_pipe_gets_everything_in_one_line_a_row(database_url: str) -> None:
    piped = subprocess.run(
        [sys.executable, "-m", "sweephand", "jobs", "failed"],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(database_url),
        cwd=REPOSITORY,
    )

    head, row = piped.stdout.splitlines()
    assert "\x1b" not in piped.stdout
    assert row.endswith(_LONG)
    assert f"product_id={2**60}" in row
    assert head.index("LAST ERROR") == cell_len(row[: row.rindex("ValueError")])


def test_a_reader_that_leaves_early_is_no_error(filled: psycopg.Connection, database_url: str) -> None:
    for number in range(200):
        insert_job(filled, args={"note": "x" * 900, "number": number})

    process = subprocess.Popen(
        [sys.executable, "-m", "sweephand", "jobs", "list", "--limit", "500"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(database_url),
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()

    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(30)
    assert first.split()[:2] == [b"ID", b"KIND"]


def test_a_preview_answers_in_json_alone_whatever_the_application_logs(database_url: str) -> None:
    previewed = subprocess.run(
        [sys.executable, "-m", "sweephand", "sweeps", "preview", "untidy_shelves", "--app", "tests.cli.apps:app", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(database_url),
        cwd=REPOSITORY,
    )

    assert '"enqueued": 2' in previewed.stdout
    assert previewed.stdout.startswith('{\n  "sweep": "shop/untidy_shelves",\n')

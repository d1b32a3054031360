"""Freeze a PostgreSQL server, as a black hole in the network does: connections stay and nobody answers."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.jobs import open_connection


@contextmanager
def frozen(database_url: str) -> Iterator[None]:
    """Stop every process of the server for the block. The server must run on this machine."""
    with open_connection(database_url) as conn:
        row = conn.execute("SHOW data_directory").fetchone()
    assert row is not None
    postmaster = int((Path(row[0]) / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])
    # The postmaster first, so that it starts no more of them.
    os.kill(postmaster, signal.SIGSTOP)
    processes = [postmaster, *_children(postmaster)]
    for pid in processes[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            # The backend that told where the data lies was about to end.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _children(parent: int) -> list[int]:
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found

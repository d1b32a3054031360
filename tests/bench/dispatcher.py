"""What a dispatcher costs while it idles, and how long nobody leads when one ends or is killed."""

import os
import signal
import tempfile
import time
from pathlib import Path

from sweephand.postgres.migrate import migrate
from tests.bench.figures import Figure
from tests.support.databases import Databases
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

_APP = "tests.bench.idle_app:app"
_IDLE_SECONDS = 20.0
_LEASE_SECONDS = 15
_RETRY_SECONDS = 2
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def measure(server_url: str) -> list[Figure]:
    """Return the figures of two real processes with the default lease, elected by the row in PostgreSQL."""
    databases = Databases(server_url, run_id="bench")
    url = databases.create_clone(migrate)
    with tempfile.TemporaryDirectory() as directory:
        commands = Commands(Path(directory), database_url=url)
        try:
            return _measure(commands)
        finally:
            commands.destroy_all()
            databases.drop_all()


def _measure(commands: Commands) -> list[Figure]:
    first = commands.start("dispatcher", app=_APP)
    first.wait_for_log("term_began")
    cpu = _cpu_seconds(first)
    begun = time.monotonic()
    until(lambda: time.monotonic() - begun > _IDLE_SECONDS, deadline_seconds=2 * _IDLE_SECONDS, message="time passes")
    share = (_cpu_seconds(first) - cpu) / (time.monotonic() - begun) * 100
    megabytes = _resident_megabytes(first)
    second = commands.start("dispatcher", app=_APP)
    second.wait_for_log("dispatcher_started")
    hand_over = _seconds_without_leader(first, second, sent=signal.SIGTERM)
    third = commands.start("dispatcher", app=_APP)
    third.wait_for_log("dispatcher_started")
    take_over = _seconds_without_leader(second, third, sent=signal.SIGKILL)
    return [
        Figure("an idle dispatcher's memory", megabytes, "MB", bound=80),
        Figure("an idle dispatcher's share of a core", share, "%", bound=1),
        Figure("hand-over at SIGTERM", hand_over, "s", bound=1 + _RETRY_SECONDS * 1.2),
        Figure("take-over after SIGKILL", take_over, "s", bound=_LEASE_SECONDS + _RETRY_SECONDS * 1.2),
    ]


def _seconds_without_leader(leader: RunningCommand, other: RunningCommand, *, sent: signal.Signals) -> float:
    start = time.monotonic()
    leader.kill(sent)
    other.wait_for_log("term_began", deadline_seconds=60)
    return time.monotonic() - start


def _cpu_seconds(command: RunningCommand) -> float:
    fields = Path(f"/proc/{command.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def _resident_megabytes(command: RunningCommand) -> float:
    status = Path(f"/proc/{command.pid}/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024

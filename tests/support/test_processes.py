import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import RunningCommand, is_alive
from tests.support.waiting import until

_PROGRAM = """
import os, signal, subprocess, sys
print("started with", sorted(os.environ), flush=True)
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print("child", child.pid, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[RunningCommand]:
    started = RunningCommand.start([sys.executable, "-c", _PROGRAM], env={"GIVEN": "1"}, log_path=tmp_path / "program.log")
    yield started
    started.destroy()


def test_its_log_is_waited_for_and_its_exit_status_told(command: RunningCommand) -> None:
    assert command.wait_for_log("ready") == "ready"

    command.kill(signal.SIGTERM)

    assert command.wait() == 3
    assert not command.is_running()


def test_nothing_of_our_environment_reaches_it_but_what_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SWEEPHAND_WORKER_THREADS", "99")

    command = RunningCommand.start([sys.executable, "-c", _PROGRAM], env={"GIVEN": "1"}, log_path=tmp_path / "program.log")
    line = command.wait_for_log("started with")
    command.destroy()

    assert "'GIVEN'" in line
    assert "SWEEPHAND_WORKER_THREADS" not in line


def test_one_that_ends_without_the_line_is_reported_with_its_log_at_once(tmp_path: Path) -> None:
    command = RunningCommand.start([sys.executable, "-c", "print('no luck')"], env={}, log_path=tmp_path / "short.log")

    with pytest.raises(AssertionError, match=r"short ended with 0 and did not log 'ready':\nno luck"):
        command.wait_for_log("ready")

    command.destroy()


def test_destroying_it_ends_its_children_too(command: RunningCommand) -> None:
    child = int(command.wait_for_log("child").split()[1])
    command.wait_for_log("ready")

    command.destroy()

    until(lambda: not is_alive(child), message="the child is gone")

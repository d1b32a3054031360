"""Start the real `sweephand` commands, read what they log, and end them in every way."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import until

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RunningCommand:
    """Be one process in a process group of its own, whose output goes to a file."""

    name: str
    process: subprocess.Popen[bytes]
    log_path: Path

    @classmethod
    def start(cls, command: Sequence[str], *, env: Mapping[str, str], log_path: Path) -> "RunningCommand":
        """Start a command in the repository's root, with only PATH, HOME, TMPDIR and `env` in its environment."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
                env={**kept, "PYTHONUNBUFFERED": "1", **env},
                start_new_session=True,
            )
        return cls(name=log_path.stem, process=process, log_path=log_path)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    @property
    def log(self) -> str:
        """All that it wrote so far, to standard output and standard error."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def is_running(self) -> bool:
        """Tell whether it has not ended; a stopped (SIGSTOP) process runs."""
        return self.process.poll() is None

    def wait_for_log(self, text: str, *, deadline_seconds: float = 40, count: int = 1) -> str:
        """Return the line with the `count`th appearance of a text in the log, waiting for it."""

        def line() -> str | None:
            lines = [line for line in self.log.splitlines() if text in line]
            if len(lines) < count and not self.is_running() and text not in self.log:
                message = f"{self.name} ended with {self.process.returncode} and did not log {text!r}:\n{self.log}"
                raise AssertionError(message)
            return lines[count - 1] if len(lines) >= count else None

        found = until(line, deadline_seconds=deadline_seconds, message=f"{self.name} logs {text!r} ({count} times)")
        if found is None:
            raise AssertionError(text)
        return found

    def kill(self, sent: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process, and to it alone; see `wait` for the end."""
        self.process.send_signal(sent)

    def wait(self, *, deadline_seconds: float = 40) -> int:
        """Return the exit status, negative for a signal, waiting for the end."""
        try:
            return self.process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            message = f"{self.name} did not end within {deadline_seconds:g} s:\n{self.log}"
            raise AssertionError(message) from None

    def destroy(self) -> None:
        """End the process and all that it started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Commands:
    """Be the `sweephand` processes that one test starts; `destroy_all` ends them and returns their logs."""

    def __init__(self, directory: Path, *, database_url: str) -> None:
        """Keep the logs in `directory`; the processes use the database unless told otherwise."""
        self._directory = directory
        self._database_url = database_url
        self._started: list[RunningCommand] = []

    def start(
        self, command: str, *arguments: str, app: str | None = None, env: Mapping[str, str] | None = None
    ) -> RunningCommand:
        """Start `sweephand <command> <arguments>`.

        Args:
            command: The sub-command, `worker` for example.
            arguments: What follows it.
            app: `module:attribute` of the application; modules under tests/ can be named, as in `tests.jobs.apps:app`.
            env: More of the environment; it wins over what is set here: any free port for HTTP, logs for people.
        """
        settings = {
            "DATABASE_URL": self._database_url,
            "SWEEPHAND_API_PORT": "0",
            "SWEEPHAND_METRICS_PORT": "0",
            "SWEEPHAND_LOG_FORMAT": "console",
            "PYTHONPATH": str(REPOSITORY),
            **({} if app is None else {"SWEEPHAND_APP": app}),
            **(env or {}),
        }
        log_path = self._directory / f"{command}-{len(self._started)}.log"
        started = RunningCommand.start([sys.executable, "-m", "sweephand", command, *arguments], env=settings, log_path=log_path)
        self._started.append(started)
        return started

    def destroy_all(self) -> str:
        """End every process that still runs and return what all of them wrote."""
        for command in self._started:
            command.destroy()
        return "\n".join(f"--- {command.name}: exit {command.process.returncode}\n{command.log}" for command in self._started)


def is_alive(pid: int) -> bool:
    """Tell whether a process of any parent exists and is not a zombie that nobody has waited for."""
    try:
        # The name, in parentheses, may have spaces in it; the state follows.
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    except FileNotFoundError:
        return False
    return status.split()[0] != "Z"

"""Start processes that end with this one, however it ends, and read what they write line by line."""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Thread

OnLine = Callable[[str, str], None]
"""Called with a process's name and a line that it wrote; from a thread of its own for each process."""

# Waits on its standard input, which closes when the parent ends, even by SIGKILL. "done" says that there is nothing to do.
# Not PR_SET_PDEATHSIG: that is Linux's alone, and it fires when the thread ends that started the child.
_KEEPER = """
read -r word; [ "$word" = done ] && exit 0
alive() { for pid; do kill -0 "$pid" 2>/dev/null && return 0; done; return 1; }
kill -TERM "$@" 2>/dev/null
turns=0; while [ $turns -lt 50 ] && alive "$@"; do sleep 0.1; turns=$((turns + 1)); done
kill -KILL "$@" 2>/dev/null
"""


@dataclass(frozen=True, slots=True)
class Child:
    """One `sweephand` process and the thread that reads its lines."""

    name: str
    process: subprocess.Popen[str]
    reader: Thread


@dataclass(frozen=True, slots=True)
class Keeper:
    """A process that ends the children when this process ends without having done so."""

    process: subprocess.Popen[str]

    def dismiss(self) -> None:
        """End the keeper; the children are dealt with."""
        self.process.communicate("done\n")


def start_child(name: str, command: Sequence[str], *, environment: Mapping[str, str], on_line: OnLine) -> Child:
    """Start `sweephand <command>` with this Python; what it writes on either stream goes to `on_line`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sweephand", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        encoding="utf-8",
        errors="replace",
        # Ctrl-C reaches the whole foreground group; a child that got it and then our SIGTERM would stop without grace.
        start_new_session=True,
    )
    reader = Thread(target=_read, args=(name, process, on_line), name=f"{name}-lines", daemon=True)
    reader.start()
    return Child(name=name, process=process, reader=reader)


def start_keeper(children: Sequence[Child]) -> Keeper:
    """Start the keeper of these children."""
    pids = [str(child.process.pid) for child in children]
    process = subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "sweephand-keeper", *pids], stdin=subprocess.PIPE, text=True, start_new_session=True
    )
    return Keeper(process)


def _read(name: str, process: subprocess.Popen[str], on_line: OnLine) -> None:
    if process.stdout is None:
        return
    with process.stdout as lines:
        for line in lines:
            on_line(name, line.rstrip("\n"))

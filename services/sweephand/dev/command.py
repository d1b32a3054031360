"""`sweephand dev`: the stack in a terminal until Ctrl-C."""

import os
import signal
import sys
from pathlib import Path
from threading import Event, Lock
from types import FrameType

from sweephand.dev.local_stack import ROLES, LocalStack, StackAddresses

_COLOURS = {"api": "\x1b[36m", "worker": "\x1b[32m", "dispatcher": "\x1b[35m", "migrate": "\x1b[33m"}
_RESET = "\x1b[0m"
_LOOK_SECONDS = 0.2


def run_dev(app_target: str, *, api_port: int, data_dir: Path | None) -> int:
    """Run the stack with its lines on standard output until SIGINT or SIGTERM; return the exit code.

    A process that ends by itself ends the others too, with exit code 1.

    Raises:
        SweephandError: The stack does not start.
    """
    screen = Screen(is_coloured=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    stack = LocalStack(app_target, on_line=screen.write, api_port=api_port, data_dir=data_dir)
    stopping = Event()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the form of a signal handler
        if stopping.is_set():
            # Someone who asks twice does not want to wait.
            raise KeyboardInterrupt
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    try:
        addresses = stack.start()
        signal.signal(signal.SIGINT, stop)
        screen.show(addresses)
        while not stopping.wait(_LOOK_SECONDS) and not stack.ended():
            pass
        ended = stack.ended()
        for role, code in ended.items():
            screen.write("dev", f"{role} ended with exit code {code}; stopping the others")
        codes = stack.stop()
    except KeyboardInterrupt:
        stack.stop(grace_seconds=0)
        return 130
    return 1 if ended or any(codes.values()) else 0


class Screen:
    """Standard output, shared by the processes line by line, each with its name before it."""

    def __init__(self, *, is_coloured: bool) -> None:
        self._is_coloured = is_coloured
        self._lock = Lock()

    def write(self, name: str, line: str) -> None:
        """Write a line of a process. Thread-safe."""
        label = f"{name:<{max(map(len, ROLES))}} |"
        if self._is_coloured:
            label = f"{_COLOURS.get(name, '')}{label}{_RESET}"
        with self._lock:
            sys.stdout.write(f"{label} {line}\n")
            sys.stdout.flush()

    def show(self, addresses: StackAddresses) -> None:
        """Write where everything is; the URL of a database that is not our own may hold a password and is not shown."""
        self.write("dev", f"api       {addresses.api_url}")
        for role, url in addresses.endpoint_urls.items():
            self.write("dev", f"metrics   {url}/metrics ({role})")
        shown = addresses.database_url if addresses.is_embedded else "the one that DATABASE_URL names"
        self.write("dev", f"database  {shown}")
        self.write("dev", "ready; Ctrl-C ends all of it")

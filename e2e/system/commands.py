"""Run programs: kubectl, helm, docker, kind."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


class CommandError(Exception):
    """A program failed or did not end in time; the message has its words and what it wrote."""


def run(*command: str, deadline_seconds: float = 120, given: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return what a program wrote to standard output. It runs in the repository's root.

    Args:
        command: The program and its arguments.
        deadline_seconds: How long it may take.
        given: What it reads from standard input.
        env: Its whole environment; None for this process's own.

    Raises:
        CommandError: it did not exit with 0, or not in time.
    """
    try:
        done = subprocess.run(
            command,
            input=given or "",
            capture_output=True,
            text=True,
            timeout=deadline_seconds,
            cwd=REPOSITORY,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{' '.join(command)}: no end within {deadline_seconds:g} s") from error
    if done.returncode:
        raise CommandError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout

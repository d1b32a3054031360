"""Run a PostgreSQL of one's own, for the demo, development and tests, on a machine where none is installed.

`database_url_or_embedded()` is what callers want: the server that DATABASE_URL names, and only without it an embedded one.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from sweephand.model.errors import DatabaseError
from sweephand.postgres.embedded_installation import Account, find_programs, find_unprivileged_account

# Source: sun_path in unix(7) holds 107 bytes, in macOS 103.
_SOCKET_PATH_BYTES = 103
_SOCKET_NAME = ".s.PGSQL.5432"
_DEADLINE_SECONDS = 60

# Little log is kept, since it may lie in memory; nothing lies outside of the data directory.
_NOT_DURABLE = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "checkpoint_timeout": "1h",
    "max_wal_size": "256MB",
    "dynamic_shared_memory_type": "mmap",  # else an immediate stop leaves segments behind
}
_MEMORY = Path("/dev/shm")  # noqa: S108 - Linux's file system in memory, where everyone has directories of their own
_LEAST_MEMORY_BYTES = 2 * 1024**3

# Waits until the process that holds the other end of its standard input closes it or dies, however it dies, then cleans up.
_KEEPER = 'read -r _; "$1" stop --silent --pgdata="$2" --mode="$3"; shift 3; rm -rf -- "$@"'


@dataclass(frozen=True, slots=True)
class _Home:
    """Be what a server has from its first start until it is closed: its directory for socket and log, programs and keeper."""

    scratch: Path
    data: Path
    programs: Path
    keeper: subprocess.Popen[bytes]


class EmbeddedPostgres:
    """Be one PostgreSQL server that ends with the process that started it, even if that one is killed with SIGKILL.

    It listens on a Unix socket only, in a directory that only its own user and root may enter, and trusts who connects there. A
    context manager: entering it starts the server and gives its URL, leaving it closes the server. One thread at a time.

    A machine that loses power leaves a directory `sweephand-postgres-*` in the temporary directory, which may be deleted.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        is_durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a server; nothing happens before `start`.

        Args:
            data_dir: Where the data stays after `close`; made if it is not there. None: a directory that `close` deletes.
            is_durable: False never waits for the disk, for data that a crash of the machine may take: tests. Without a
                `data_dir` they then lie in memory, if the machine has a file system there with 2 GiB free: making and deleting
                a database costs a sixth.
            settings: More settings of postgresql.conf, for example `{"shared_preload_libraries": "pg_stat_statements"}`.
        """
        self._data_dir = data_dir.resolve() if data_dir else None
        self._is_durable = is_durable
        self._settings = ({} if is_durable else _NOT_DURABLE) | dict(settings or {})
        self._home: _Home | None = None

    def __enter__(self) -> str:
        """Start the server and return its URL."""
        return self.start()

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        """Close the server."""
        self.close()

    def start(self) -> str:
        """Start the server unless it runs and return its URL, which is the same after every `stop` and `start`.

        Raises:
            DatabaseError: There is no PostgreSQL for this machine, the directory is of no use, or the server did not start.
        """
        account = find_unprivileged_account()
        if self._home is not None:
            self._start(self._home, account=account)
        else:
            self._home = _make_home(self._data_dir, is_durable=self._is_durable, account=account)
            try:
                self._start(self._home, account=account)
            except BaseException:
                self.close()
                raise
        return f"postgresql://postgres@/postgres?host={quote(str(self._home.scratch))}"

    def stop(self, *, is_crash: bool = False) -> None:
        """Stop the server, cutting its connections, and keep its data, so that `start` can bring it back.

        `is_crash` ends it without a checkpoint, as a crash of PostgreSQL would: the next start recovers from the log.
        """
        mode = "immediate" if is_crash else "fast"
        account = find_unprivileged_account()
        _pg_ctl(self._started, "stop", "--wait", f"--timeout={_DEADLINE_SECONDS}", f"--mode={mode}", account=account)

    def close(self) -> None:
        """Stop the server for good and delete its temporary files. Closing twice is allowed."""
        if self._home is not None:
            # The same way as after a SIGKILL, so that it is the way that is tested every day.
            self._home.keeper.communicate(timeout=_DEADLINE_SECONDS)
            self._home = None

    def is_running(self) -> bool:
        """Tell whether the server process lives; False too before `start` and after `close`."""
        home = self._home
        return home is not None and _is_served(home.data, programs=home.programs, account=find_unprivileged_account())

    @property
    def log_path(self) -> Path:
        """The file of the server's log; it is gone after `close`."""
        return self._started.scratch / "server.log"

    def _start(self, home: _Home, *, account: Account) -> None:
        if not (home.data / "PG_VERSION").exists():
            _initialise(home, account=account)
        if not _is_served(home.data, programs=home.programs, account=account):
            _write_settings(home, settings=self._settings, account=account)
            _pg_ctl(home, "start", "--wait", f"--timeout={_DEADLINE_SECONDS}", f"--log={self.log_path}", account=account)

    @property
    def _started(self) -> _Home:
        if self._home is None:
            message = "this PostgreSQL is not started; call start() first"
            raise DatabaseError(message)
        return self._home


@contextmanager
def database_url_or_embedded(
    environ: Mapping[str, str] = os.environ,
    *,
    data_dir: Path | None = None,
    is_durable: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Give the URL of a database for as long as the block runs: DATABASE_URL if it is set, or an embedded server's.

    The other arguments are those of EmbeddedPostgres and say nothing about a server that DATABASE_URL names.

    Raises:
        DatabaseError: DATABASE_URL is not set and no server can be started here.
    """
    database_url = environ.get("DATABASE_URL")
    if database_url:
        yield database_url
        return
    with EmbeddedPostgres(data_dir, is_durable=is_durable, settings=settings) as embedded_url:
        yield embedded_url


def _make_home(data_dir: Path | None, *, is_durable: bool, account: Account) -> _Home:
    scratch = Path(tempfile.mkdtemp(prefix="sweephand-postgres-", dir=_scratch_parent(account)))
    made = [scratch]
    try:
        account.own(scratch)
        programs = find_programs(account, scratch=scratch)
        data = data_dir or scratch / "data"
        if data_dir is None and not is_durable and _has_memory(account):
            # The programs stay where they are: what lies in memory may often not be executed.
            made.append(Path(tempfile.mkdtemp(prefix="sweephand-postgres-", dir=_MEMORY)))
            account.own(made[-1])
            data = made[-1] / "data"
        if _is_served(data, programs=programs, account=account):
            message = f"another PostgreSQL runs in {data}; stop it first, or choose another directory"
            raise DatabaseError(message)  # noqa: TRY301 - the clean-up is wanted
        mode = "fast" if data_dir else "immediate"
        keeper = account.start(
            ["/bin/sh", "-c", _KEEPER, "sweephand-keeper", str(programs / "pg_ctl"), str(data), mode, *map(str, made)]
        )
    except BaseException:
        for directory in made:
            shutil.rmtree(directory, ignore_errors=True)
        raise
    return _Home(scratch=scratch, data=data, programs=programs, keeper=keeper)


def _scratch_parent(account: Account) -> Path:
    """Return the temporary directory, or /tmp where that one is closed to the account or too long for a socket's path."""
    wanted = Path(tempfile.gettempdir()).resolve()
    socket_path_bytes = len(os.fsencode(wanted / "sweephand-postgres-12345678" / _SOCKET_NAME))
    return wanted if socket_path_bytes <= _SOCKET_PATH_BYTES and account.can_reach(wanted) else Path("/tmp")  # noqa: S108


def _has_memory(account: Account) -> bool:
    """Tell whether there is a file system in memory, with room for the data of many tests."""
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK) or not account.can_reach(_MEMORY):
        return False
    return shutil.disk_usage(_MEMORY).free >= _LEAST_MEMORY_BYTES


def _is_served(data: Path, *, programs: Path, account: Account) -> bool:
    return account.run([str(programs / "pg_ctl"), "status", f"--pgdata={data}"]).returncode == 0


def _initialise(home: _Home, *, account: Account) -> None:
    """Make an empty database cluster, whose text is UTF-8 and sorted alike on every machine."""
    try:
        home.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A directory with something in it is someone's: initdb says so and nothing there changes hands.
        if not any(home.data.iterdir()):
            account.own(home.data)
    except OSError as error:
        message = f"PostgreSQL's directory {home.data} cannot be made ({error.strerror}); choose another one"
        raise DatabaseError(message) from error
    locale = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    initdb = [str(home.programs / "initdb"), f"--pgdata={home.data}", "--username=postgres", "--auth=trust", "--no-sync", *locale]
    outcome = account.run(initdb)
    if outcome.returncode != 0:
        # initdb tells its whole story first; the last line is what went wrong.
        message = f"PostgreSQL could not make its files in {home.data}: {outcome.stdout.strip().rpartition(chr(10))[2]}"
        raise DatabaseError(message)
    with (home.data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
        configuration.write("include_if_exists = 'sweephand.conf'\n")


def _write_settings(home: _Home, *, settings: Mapping[str, str], account: Account) -> None:
    own = {"listen_addresses": "", "unix_socket_directories": str(home.scratch), "port": "5432"}
    quoted = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in {**settings, **own}.items()}
    path = home.data / "sweephand.conf"
    path.write_text("".join(f"{name} = '{value}'\n" for name, value in quoted.items()), encoding="utf-8")
    account.own(path)


def _pg_ctl(home: _Home, *arguments: str, account: Account) -> None:
    outcome = account.run([str(home.programs / "pg_ctl"), *arguments, "--silent", f"--pgdata={home.data}"])
    if outcome.returncode != 0:
        log = home.scratch / "server.log"
        last_lines = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else [outcome.stdout.strip()]
        message = f"PostgreSQL's {arguments[0]} failed in {home.data}: {' / '.join(last_lines)}"
        raise DatabaseError(message)

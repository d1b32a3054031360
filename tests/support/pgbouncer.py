"""Put Debian's PgBouncer, in transaction mode, between a test and its database."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from sweephand.model.errors import DatabaseError
from tests.support.jobs import open_connection
from tests.support.waiting import until

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

_CONFIG = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
logfile = {directory}/log
"""


@contextmanager
def transaction_pooler(database_url: str) -> Iterator[str]:
    """Run a PgBouncer for the block and give the URL of the same database through it."""
    assert PGBOUNCER is not None
    server = conninfo_to_dict(database_url)
    parts = {"host": server["host"], "port": server.get("port"), "user": server.get("user", "postgres")}
    if server.get("password"):
        parts["password"] = server["password"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="sweephand-pgbouncer-", dir="/tmp") as name:
        directory = Path(name)
        config = directory / "pgbouncer.ini"
        settings = " ".join(f"{key}={value}" for key, value in parts.items() if value is not None)
        config.write_text(_CONFIG.format(server=settings, port=port, directory=directory), encoding="utf-8")
        command = [PGBOUNCER, "-q", str(config)]
        if os.geteuid() == 0:
            # It refuses to be root; whoever owns the server's socket may use it.
            owner = _owner_of(str(server["host"]))
            shutil.chown(directory, owner)
            command[1:1] = ["-u", owner]
        with subprocess.Popen(command) as process:
            try:
                url = f"postgresql://{parts['user']}@127.0.0.1:{port}/{server['dbname']}"
                until(lambda: _answers(url), message="PgBouncer answers")
                yield url
            finally:
                process.kill()


def _owner_of(host: str) -> str:
    return pwd.getpwuid(Path(host).stat().st_uid).pw_name if host.startswith("/") else "nobody"


def _answers(url: str) -> bool:
    try:
        with open_connection(url) as conn:
            return conn.execute("SELECT true").fetchone() == (True,)
    except DatabaseError:
        return False

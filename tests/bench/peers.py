"""Compare with other job systems by the shared harness, where it is beside the repository; see docs/performance.md."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_HARNESS = _ROOT.parent / "shared" / "bench"
_REGISTRATION = '''"""Registers the product."""
import sys

from registry import Peer, count, exists


def peers():
    return [Peer(name, [sys.executable, "-m", "agents.common", "product_peer"],
                 exists("sweephand.job", "state", "available", "running"),
                 count("sweephand.job", "state = 'completed'"), {"PROCESSES": number}, "this product, defaults")
            for number, name in ((1, "sweephand"), (2, "sweephand-two-processes"))]
'''


def compare(server_url: str) -> str:
    """Run the harness with the product against pgqueuer, procrastinate, the floor and pgbench; return its table.

    The other peers' environments are made by the harness's setup.sh. Without the harness this says what is missing.
    """
    if not _HARNESS.is_dir():
        return "peers: the shared harness is not beside this repository; nothing compared\n"
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "bench"
        shutil.copytree(_HARNESS, copy)
        subprocess.run(["chmod", "-R", "u+w", str(copy)], check=True)
        shutil.copy(Path(__file__).with_name("product_peer.py"), copy / "agents" / "product_peer.py")
        (copy / "product.py").write_text(_REGISTRATION)
        done = subprocess.run(
            [sys.executable, "peers.py", "--dsn", server_url, *os.environ.get("PEERS_ARGS", "").split()],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout + done.stderr[-2000:]

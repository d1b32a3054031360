"""A machine that cannot make a virtual environment is told why and what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY

_TOO_OLD = """#!/bin/sh
case "$2" in *version_info*) exit 1 ;; esac
echo Python 3.9.2
"""
_WITHOUT_VENV = """#!/bin/sh
case "$2" in *ensurepip*) exit 1 ;; esac
echo Python 3.11.2
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(REPOSITORY / "tools" / "make_venv", tmp_path / "tools")
    return tmp_path


def _make_venv(checkout: Path, *, python: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "PYTHON": python}
    return subprocess.run([checkout / "tools" / "make_venv"], env=env, check=False, capture_output=True, text=True, timeout=20)


def _interpreter(checkout: Path, *, program: str) -> str:
    path = checkout / "python3"
    path.write_text(program, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_without_python_it_says_so(checkout: Path) -> None:
    outcome = _make_venv(checkout, python="no-such-python")

    assert outcome.returncode == 1
    assert "no-such-python was not found" in outcome.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_too_old_is_refused_with_its_version(checkout: Path) -> None:
    outcome = _make_venv(checkout, python=_interpreter(checkout, program=_TOO_OLD))

    assert outcome.returncode == 1
    assert "is Python 3.9.2, but sweephand needs Python 3.11 to 3.14" in outcome.stderr


def test_debians_python_without_venv_names_the_package_to_install(checkout: Path) -> None:
    outcome = _make_venv(checkout, python=_interpreter(checkout, program=_WITHOUT_VENV))

    assert outcome.returncode == 1
    assert "apt-get install python3-venv" in outcome.stderr

"""What users install has the engine, all of it, and nothing else."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.processes import REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL, timeout=50)
    (built,) = directory.glob("*.whl")
    return built


def test_the_wheel_holds_the_engine_and_no_application(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()

    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"sweephand"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_wheel_holds_every_file_of_the_engine(wheel: Path) -> None:
    source = REPOSITORY / "services"
    files = {path.relative_to(source).as_posix() for path in (source / "sweephand").rglob("*") if path.is_file()}

    assert {name for name in files if "__pycache__" not in name} <= set(ZipFile(wheel).namelist())

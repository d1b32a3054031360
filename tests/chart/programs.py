"""Run the programs that the bundle is made for, and skip a test by name where one is missing.

`make chart` demands them all (CHART_TESTS=required); a bare `pytest` runs what it can.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "sweephand"
# The Kubernetes versions that the chart promises to run on.
KUBERNETES_VERSIONS = tuple(f"1.{minor}.0" for minor in range(29, 38))
# As `helm template` cannot ask a cluster, it is told one.
KUBERNETES_VERSION = "1.34.0"


def program(name: str) -> str:
    """Return the path of a program, or skip the test; fail it where `make chart` promised that all is there."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not installed; see docs/deploy/development.md"
        if os.environ.get("CHART_TESTS") == "required":
            pytest.fail(message)
        pytest.skip(message)
    return found


def run(arguments: Sequence[str | Path], *, directory: Path = ROOT, text: str | None = None) -> str:
    """Run a program to its end and return what it wrote; a test fails with all of its words if the program does."""
    ended = run_anyway(arguments, directory=directory, text=text)
    if ended.returncode:
        pytest.fail(f"{' '.join(map(str, arguments))} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def run_anyway(
    arguments: Sequence[str | Path], *, directory: Path = ROOT, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever that is."""
    name, *others = map(str, arguments)
    return subprocess.run(
        [program(name), *others], cwd=directory, input=text, capture_output=True, text=True, check=False, timeout=120
    )


def helm_unittest() -> list[str]:
    """Return how helm-unittest is called: as a program of its own, or as helm's plugin."""
    return ["helm-unittest"] if shutil.which("helm-unittest") else ["helm", "unittest"]

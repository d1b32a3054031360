"""The pages of docs/reference that are made from code are as the code would make them now."""

import subprocess
import sys

from tests.support.processes import REPOSITORY


def test_the_pages_of_commands_and_states_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, "tools/refresh_reference", "--check"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")

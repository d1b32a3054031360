"""The README's words hold: its application runs as printed, and its links lead somewhere."""

import os
import re
from pathlib import Path

import psycopg

from tests.support.processes import Commands

_ROOT = Path(__file__).parents[2]
_DOCUMENTS = [_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *sorted((_ROOT / "docs").rglob("*.md"))]


def _first_program(document: str) -> str:
    return re.search(r"```python\n(.*?)```", document, re.DOTALL)[1]  # type: ignore[index]  # no match fails the test as well


def test_the_application_of_the_readme_finds_a_stuck_row_and_mends_it(
    commands: Commands, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "tidy.py").write_text(_first_program((_ROOT / "README.md").read_text()))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE products (id bigint PRIMARY KEY, published_at timestamptz, created_at timestamptz)")
        connection.execute("INSERT INTO products VALUES (7, NULL, now() - interval '1 hour'), (8, NULL, now())")
    environment = {"SWEEPHAND_APP": "tidy:app", "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}

    worker = commands.start("worker", env=environment)
    dispatcher = commands.start("dispatcher", env=environment)

    dispatcher.wait_for_log("dispatched sweep=stuck_publications")
    worker.wait_for_log("publishing 7")
    assert "publishing 8" not in worker.log


def test_links_between_documents_lead_to_files_that_exist() -> None:
    broken = [
        f"{document.relative_to(_ROOT)}: {target}"
        for document in _DOCUMENTS
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", document.read_text())
        if not (document.parent / target).exists()
    ]

    assert broken == []

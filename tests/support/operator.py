"""Use the operators' commands in this process, as their command line does."""

import json
from dataclasses import dataclass

from click.testing import CliRunner

from sweephand.cli import main


@dataclass(frozen=True, slots=True)
class Answer:
    """Be what a command wrote, and its exit code."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output, line by line."""
        return self.out.splitlines()

    @property
    def document(self) -> dict[str, object]:
        """Standard output as the one JSON document that it is."""
        read: object = json.loads(self.out)
        assert isinstance(read, dict)
        return {str(key): value for key, value in read.items()}

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return a list of objects in the document."""
        found = self.document[name]
        assert isinstance(found, list)
        return [dict(row) for row in found]

    def part(self, name: str) -> dict[str, object]:
        """Return an object in the document."""
        found = self.document[name]
        assert isinstance(found, dict)
        return dict(found)


class Operator:
    """Be somebody at a command line with DATABASE_URL set."""

    def __init__(self, database_url: str) -> None:
        self._environment = {"DATABASE_URL": database_url, "SWEEPHAND_APP": ""}

    def run(self, *arguments: str, answer: str | None = None, exit_code: int = 0) -> Answer:
        """Return what `sweephand <arguments>` wrote; it must end with `exit_code`. `answer` is what is typed."""
        result = CliRunner().invoke(main, arguments, input=answer, env=self._environment, prog_name="sweephand")
        written = Answer(exit_code=result.exit_code, out=result.stdout, err=result.stderr)
        assert written.exit_code == exit_code, f"exit {result.exit_code}, {result.exception!r}\n{written.out}{written.err}"
        return written

"""Keep what a run was of: its date, the version, and where it ran."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from e2e.system.commands import CommandError, run
from e2e.system.kubernetes import as_mapping, at

_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class Run:
    """Be a run. What is not known is empty."""

    began_at: str
    """As an ISO date and time in UTC."""
    version: str = ""
    revision: str = ""
    place: str = ""
    """cluster or processes."""
    kubernetes: str = ""
    node_image: str = ""

    @classmethod
    def beginning_now(cls, *, place: str) -> "Run":
        """Return the run that begins here, of this checkout; its cluster is up, if it has one."""
        on_cluster = place == "cluster"
        return cls(
            began_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=version("sweephand"),
            revision=_said("git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"),
            place=place,
            kubernetes=_kubernetes_version() if on_cluster else "",
            node_image=os.environ.get("KIND_NODE_IMAGE", "kind's own") if on_cluster else "",
        )

    def write(self, directory: Path) -> None:
        """Write it down beside the directory of the cases."""
        (directory / _FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path, *, otherwise: datetime | None) -> "Run":
        """Return the run written into a directory; where none was, one that began at another moment that is known."""
        file = directory / _FILE
        if not file.exists():
            return cls(began_at=f"{otherwise:%Y-%m-%dT%H:%M:%SZ}" if otherwise else "")
        found: object = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{name: str(value) for name, value in as_mapping(found).items()})


def _kubernetes_version() -> str:
    try:
        found: object = json.loads(_said("kubectl", "version", "--output", "json") or "{}")
    except ValueError:
        return ""
    return str(at(found, "serverVersion", "gitVersion") or "")


def _said(*command: str) -> str:
    """Return what a program says, nothing if it cannot: the page is not worth failing a run for."""
    try:
        return run(*command, deadline_seconds=30).strip()
    except (CommandError, OSError):
        return ""

"""Write the page of a run."""

from pathlib import Path


def write_page(cases: Path, directory: Path) -> Path:
    """Write the page of the cases in a directory into another; returns its file."""
    raise NotImplementedError(cases, directory)

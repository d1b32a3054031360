"""The guides' programs are valid, and what they import from sweephand exists."""

import ast
import importlib
import re
from pathlib import Path

import pytest

_GUIDES = sorted((Path(__file__).parents[2] / "docs" / "guides").glob("*.md"))


@pytest.mark.parametrize("guide", _GUIDES, ids=lambda guide: guide.stem)
def test_the_programs_of_a_guide_are_valid_and_name_what_exists(guide: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)

    missing = [
        f"{node.module}.{imported.name}"
        for program in programs
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("sweephand")
        for imported in node.names
        if not hasattr(importlib.import_module(node.module), imported.name)
    ]

    assert programs
    assert missing == []

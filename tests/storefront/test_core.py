"""The shop's core knows no framework."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import storefront

SOURCES = Path(storefront.__file__).parent
CORE = sorted([SOURCES / "ports.py", *SOURCES.glob("domain/*.py"), *SOURCES.glob("use_cases/*.py")])
ALLOWED = ("storefront.domain", "storefront.ports", "storefront.use_cases")


def imported(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case _:
                pass


@pytest.mark.parametrize("source", CORE, ids=lambda source: str(source.relative_to(SOURCES)))
def test_domain_ports_and_use_cases_import_only_the_standard_library_and_each_other(source: Path) -> None:
    foreign = [
        module
        for module in imported(source)
        if module.partition(".")[0] not in sys.stdlib_module_names and not module.startswith(ALLOWED)
    ]

    assert foreign == []

"""What import-linter's contracts in pyproject.toml cannot say about who imports what."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.support.processes import REPOSITORY

_SQL = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|LISTEN|NOTIFY|SET|BEGIN|COMMIT|LOCK TABLE|CREATE|ALTER|DROP)\s"
)
PURE = ("storefront.domain", "storefront.use_cases", "storefront.ports")


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("sweephand", "storefront", include_external_packages=True, cache_dir=None)


@pytest.mark.parametrize("package", PURE)
def test_the_core_of_storefront_imports_the_standard_library_only(imports: grimp.ImportGraph, package: str) -> None:
    modules = {package} | imports.find_descendants(package)

    imported = {name for module in modules for name in imports.find_modules_directly_imported_by(module)}

    foreign = {name for name in imported if name.split(".")[0] not in {*sys.stdlib_module_names, "storefront"}}
    assert foreign == set()


def test_sql_is_written_in_the_postgres_packages_only() -> None:
    modules = [path for path in (REPOSITORY / "services").rglob("*.py") if "postgres" not in path.parts]

    found = {f"{path.relative_to(REPOSITORY)}: {text[:60]}" for path in modules for text in _strings(path) if _SQL.match(text)}

    assert found == set()


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value

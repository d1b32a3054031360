"""What import-linter's contracts in pyproject.toml cannot say about who imports what."""

import sys

import grimp
import pytest

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

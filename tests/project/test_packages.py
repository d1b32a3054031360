"""The packages that are installed are those that pyproject.toml asks for, on any machine."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.processes import REPOSITORY

LOCKS = ("build.txt", "dev.txt", "runtime.txt")
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)


def _pins(lock: str) -> dict[str, Version]:
    text = (REPOSITORY / "requirements" / lock).read_text(encoding="utf-8")
    return {canonicalize_name(name): Version(version) for name, version in _PIN.findall(text)}


def _wanted() -> Iterator[tuple[str, Requirement]]:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    for text in project["project"]["dependencies"]:
        yield "runtime.txt", Requirement(text)
        yield "dev.txt", Requirement(text)
    for text in (*project["project"]["optional-dependencies"]["demo"], *project["dependency-groups"]["dev"]):
        yield "dev.txt", Requirement(text)
    for text in project["build-system"]["requires"]:
        yield "build.txt", Requirement(text)


def test_every_package_that_is_asked_for_is_pinned_to_a_version_that_will_do() -> None:
    for lock, requirement in _wanted():
        pins = _pins(lock)
        name = canonicalize_name(requirement.name)

        assert name in pins, f"{requirement} is not in {lock}; run tools/lock"
        assert pins[name] in requirement.specifier, f"{lock} pins {name} to {pins[name]}, not {requirement}; run tools/lock"


def test_the_image_has_the_versions_that_the_tests_ran_with() -> None:
    tested = _pins("dev.txt")

    assert {name: tested.get(name) for name in _pins("runtime.txt")} == _pins("runtime.txt")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_checks_each_file_and_names_no_registry(lock: str) -> None:
    text = (REPOSITORY / "requirements" / lock).read_text(encoding="utf-8")
    blocks = [block for block in re.split(r"\n(?=[a-z0-9])", text) if "==" in block.split("\n")[0]]

    assert len(blocks) == len(_pins(lock))
    assert [block for block in blocks if "--hash=sha256:" not in block] == []
    assert re.findall(r"https?:|file:|--(?:extra-)?index|--find-links|--trusted-host", text) == []


def test_every_requirement_of_the_project_has_a_lower_bound() -> None:
    unbounded = [str(requirement) for _, requirement in _wanted() if not any(s.operator == ">=" for s in requirement.specifier)]

    assert unbounded == []


def test_both_packages_tell_type_checkers_that_they_are_typed() -> None:
    for package in ("sweephand", "storefront"):
        assert Path(REPOSITORY, "services", package, "py.typed").exists()

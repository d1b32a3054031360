"""values.yaml, its schema, its page and its tests say the same."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.node import Node
from tests.chart.programs import CHART, ROOT, helm_unittest, run
from tests.chart.rendering import CI_FILES

VALUES = Node(yaml.safe_load((CHART / "values.yaml").read_text()))
SCHEMA = Node(json.loads((CHART / "values.schema.json").read_text()))


def schema_of(path: list[str]) -> Node:
    """Return what the schema says of a value, references followed."""
    found = SCHEMA
    for key in path:
        found = _followed(found)
        found = found["properties"][key] if found.at(f"properties.{key}").value is not None else found["additionalProperties"]
    return _followed(found)


def _followed(node: Node) -> Node:
    while (reference := node.get("$ref").value) is not None:
        node = SCHEMA.at(str(reference).removeprefix("#/").replace("/", "."))
    return node


def leaves(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the paths of all values; an empty mapping is one."""
    entries = list(node.entries())
    if not entries:
        yield path
    for key, child in entries:
        yield from leaves(child, (*path, key))


@pytest.mark.parametrize("path", list(leaves(VALUES)), ids=".".join)
def test_a_value_is_in_the_schema(path: tuple[str, ...]) -> None:
    # Kubernetes' own structures are checked by Kubernetes.
    known = list(path)
    for end, key in enumerate(path):
        if key in {"securityContext", "containerSecurityContext", "body"}:
            known = list(path[: end + 1])
            break

    assert schema_of(known).get("type").value or schema_of(known).get("enum").value


def test_every_value_of_the_schema_is_in_values_yaml() -> None:
    missing = [".".join(path) for path in _schema_paths(SCHEMA) if path[-1] not in dict(VALUES.at(".".join(path[:-1])).entries())]

    assert missing == ["global"]


def _schema_paths(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the paths that the schema allows, without the keys of each component's own `pod` and of resources."""
    for key, child in _followed(node).get("properties").entries():
        yield (*path, key)
        if (key != "pod" or not path) and key != "resources":
            yield from _schema_paths(child, (*path, key))


def test_the_schema_is_closed_everywhere() -> None:
    open_objects = [
        node.path
        for node in SCHEMA.walk()
        if node.get("type").value == "object" and "additionalProperties" not in dict(node.entries())
    ]
    allowed = {"global", "affinity", "securityContext", "containerSecurityContext", "items", "body"}

    assert {path.split(".")[-1] for path in open_objects} <= allowed


def test_the_page_is_in_step(tmp_path: Path) -> None:
    run([sys.executable, ROOT / "tools" / "make_values_page", tmp_path / "values.md"])

    assert (ROOT / "docs" / "deploy" / "values.md").read_text() == (tmp_path / "values.md").read_text(), (
        "run .venv/bin/python tools/make_values_page"
    )


def test_every_value_is_explained() -> None:
    page = (ROOT / "docs" / "deploy" / "values.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| .*? \| (.*) \|$", page, flags=re.MULTILINE)

    assert [name for name, meaning in rows if len(meaning) < 10] == []
    assert len(rows) > 150


@pytest.mark.parametrize("values", CI_FILES, ids=lambda path: path.stem)
def test_helm_finds_nothing_to_say(values: Path) -> None:
    run(["helm", "lint", CHART, "--strict", "--kube-version", "1.34.0", "--values", values])


def test_the_chart_s_own_suites_pass() -> None:
    run([*helm_unittest(), "--strict", CHART])


def test_every_contradiction_has_a_failing_case() -> None:
    checks = (CHART / "templates" / "_checks.tpl").read_text()
    suite = (CHART / "tests" / "refusals_test.yaml").read_text().replace("\\", "")
    problems = re.findall(r'append \$problems (?:\(printf )?"([^"]+)"', checks)

    assert len(problems) > 25
    for problem in problems:
        parts = [part.strip(" :;,")[:25].strip(" :;,") for part in re.split(r"%[sdvq]", problem)]
        assert any(len(part) > 10 and part in suite for part in parts), problem

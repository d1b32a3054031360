"""skaffold.yaml is what skaffold's own schema allows, and names files and stages that are there."""

import json
import re
from pathlib import Path

import yaml
from jsonschema import Draft7Validator

from tests.chart.node import Node
from tests.chart.programs import ROOT

# Skaffold's schema (Apache-2.0), without its descriptions.
SCHEMA = Path(__file__).parent / "skaffold-v4beta13.json"
CONFIG = Node(yaml.safe_load((ROOT / "skaffold.yaml").read_text()))


def test_skaffold_s_schema_allows_the_file() -> None:
    validator = Draft7Validator(json.loads(SCHEMA.read_text()))

    assert [f"{list(error.path)}: {error.message}" for error in validator.iter_errors(CONFIG.value)] == []
    assert list(validator.iter_errors({"apiVersion": "skaffold/v4beta13", "kind": "Config", "biuld": {}}))


def test_there_are_profiles_for_developers_and_for_the_end_to_end_tests() -> None:
    assert [profile["name"].text for profile in CONFIG["profiles"]] == ["dev", "e2e"]


def test_every_file_that_is_named_is_there() -> None:
    names = {
        name.text
        for node in CONFIG.walk()
        for key in ("valuesFiles", "paths")
        for name in (node.get(key) if isinstance(node.value, dict) else [])
    }

    assert names == {"k8s/overlays/dev/values.yaml", "k8s/dev/values.yaml", "k8s/overlays/dev"}
    assert all((ROOT / name).exists() for name in names)


def test_sources_are_copied_to_where_the_dev_stage_runs_them() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    (artifact,) = CONFIG["profiles"][0]["build"]["artifacts"]
    (rule,) = artifact["sync"]["manual"]

    assert re.search(rf"^FROM runtime AS {artifact['docker']['target'].text}$", dockerfile, re.MULTILINE)
    assert rule["src"].text.startswith("services/")
    assert f"PYTHONPATH={rule['dest'].text}/services" in dockerfile

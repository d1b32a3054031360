"""The Kubernetes API's JSON schemas, cut down to what kubeconform reads fast.

They come in the wheel of kubernetes-validate, one file per kind and one of 1.5 MB with all that kinds share, under
names that a validator would ask a web server for. Here each kind gets a file of its own with what it refers to.
"""

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from tests.chart.programs import ROOT

_MADE_BY_MAKE = ROOT / "build" / "kubernetes-schemas" / "kubernetes_validate"
_SHARED = "/api/_definitions.json#/$defs/"


def write_schemas(version: str, kinds: set[str], *, target: Path) -> None:
    """Write the schemas of some kinds (in small letters), strict: a field that Kubernetes does not know is an error."""
    source = _source() / f"v{version}-local-strict"
    shared = _mapping(json.loads((source / "_definitions.json").read_text())["$defs"])
    for path in source.glob("*.json"):
        if path.name.split("-")[0] in kinds:
            schema = _mapping(json.loads(path.read_text()))
            schema.pop("$id", None)
            schema["$defs"] = _closure(schema, shared)
            (target / path.name).write_text(json.dumps(schema).replace(_SHARED, "#/$defs/"))


def _source() -> Path:
    if (_MADE_BY_MAKE / "kubernetes-json-schema").is_dir():
        return _MADE_BY_MAKE / "kubernetes-json-schema"
    try:
        package = distribution("kubernetes-validate")
    except PackageNotFoundError:
        pytest.skip("the Kubernetes schemas are not there; `make chart` fetches them")
    return Path(str(package.locate_file("kubernetes_validate"))) / "kubernetes-json-schema"


def _closure(schema: object, shared: dict[str, object]) -> dict[str, object]:
    """Return what a schema refers to, and what that refers to."""
    found: dict[str, object] = {}
    waiting = _references(schema)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = shared[name]
            waiting |= _references(shared[name])
    return found


def _references(node: object) -> set[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        own = {reference.split("/$defs/")[1]} if isinstance(reference, str) else set()
        return own.union(*(_references(child) for child in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(child) for child in node))
    return set()


def _mapping(node: object) -> dict[str, object]:
    if not isinstance(node, dict):
        raise TypeError(f"not a JSON object: {node!r:.100}")
    return node

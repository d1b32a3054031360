"""k8s/ says the same as the chart: each directory is, object for object, what the chart renders with the values beside it."""

import re
from pathlib import Path

import pytest

from tests.chart.node import Node
from tests.chart.programs import ROOT, run
from tests.chart.rendering import Object, objects_of, render_text

K8S = ROOT / "k8s"
# Helm says that it manages an object; kustomize does not.
HELM_S_OWN = ("helm.sh/chart", "app.kubernetes.io/managed-by")


def normalised(made: Object) -> tuple[str, object]:
    """Return an object's key and content without what may differ: Helm's labels, and the migration's hash."""
    name = re.sub(r"-migrate-[0-9a-f]{10}$", "-migrate", made.key)
    return name, _plain(made.node)


def _plain(node: Node) -> object:
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.entries() if key not in HELM_S_OWN}
    if isinstance(node.value, list):
        return [_plain(item) for item in node]
    if isinstance(node.value, str):
        return re.sub(r"-migrate-[0-9a-f]{10}$", "-migrate", node.value)
    return node.value


@pytest.mark.parametrize(
    ("directory", "values"),
    [
        ("base", ["values.yaml"]),
        ("overlays/dev", ["overlays/dev/values.yaml"]),
        ("overlays/production", ["values.yaml", "overlays/production/values.yaml"]),
    ],
)
def test_a_directory_is_what_the_chart_renders(directory: str, values: list[str]) -> None:
    text = render_text(*(K8S / name for name in values), release="sweephand", namespace="sweephand", api_versions=())
    chart = dict(normalised(one) for one in objects_of(text) if one.component != "test")

    built = dict(normalised(one) for one in objects_of(run(["kubectl", "kustomize", K8S / directory])))
    built.pop("Namespace/sweephand", None)

    assert built.keys() == chart.keys()
    for key, content in built.items():
        assert content == chart[key], key


def test_the_resources_are_in_step_with_the_chart(tmp_path: Path) -> None:
    run([ROOT / "tools" / "make_kustomize_base", tmp_path])

    for made in sorted(tmp_path.rglob("*.yaml")):
        kept = K8S / made.relative_to(tmp_path)
        assert kept.read_text() == made.read_text(), "run tools/make_kustomize_base"


def test_every_resource_is_used() -> None:
    for directory in (K8S / "base", *(K8S / "overlays").iterdir()):
        named = (directory / "kustomization.yaml").read_text()
        files = {path.name for path in directory.glob("*.yaml")} - {"kustomization.yaml", "values.yaml"}
        assert {name for name in files if name not in named} == set(), directory.name

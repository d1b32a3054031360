"""Render the chart, and look at what comes out as plain objects."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.chart.node import Node
from tests.chart.programs import CHART, KUBERNETES_VERSION, run

CI_FILES = sorted((CHART / "ci").glob("*.yaml"))
# What a cluster with all operators says that it has, for the objects that are made where there is someone to read them.
OPERATORS = ("monitoring.coreos.com/v1",)
_POD_PATHS = {"Pod": "", "Deployment": "spec.template", "StatefulSet": "spec.template", "Job": "spec.template"}


@dataclass(frozen=True, slots=True)
class Object:
    """A Kubernetes object."""

    node: Node

    @property
    def kind(self) -> str:
        return self.node["kind"].text

    @property
    def name(self) -> str:
        return self.node["metadata"]["name"].text

    @property
    def key(self) -> str:
        """Return what tells it from all others of its namespace."""
        return f"{self.kind}/{self.name}"

    @property
    def component(self) -> str:
        return self.node["metadata"]["labels"]["app.kubernetes.io/component"].text

    @property
    def pod(self) -> Node | None:
        """Return the pod that it is or makes."""
        path = _POD_PATHS.get(self.kind)
        if path is None:
            return None
        return self.node.at(path) if path else self.node


def render_text(
    *values: Path,
    release: str = "shop",
    namespace: str = "orders",
    settings: Iterable[str] = (),
    api_versions: Iterable[str] = OPERATORS,
    kubernetes_version: str = KUBERNETES_VERSION,
) -> str:
    """Return what `helm template` writes. `settings` are `--set`'s."""
    command: list[str | Path] = ["helm", "template", release, CHART, "--namespace", namespace]
    command += ["--kube-version", kubernetes_version]
    for file in values:
        command += ["--values", file]
    for version in api_versions:
        command += ["--api-versions", version]
    for setting in settings:
        command += ["--set", setting]
    return _once(tuple(command))


@cache
def _once(command: tuple[str | Path, ...]) -> str:
    return run(command)


def render(
    *values: Path,
    release: str = "shop",
    namespace: str = "orders",
    settings: Iterable[str] = (),
    api_versions: Iterable[str] = OPERATORS,
) -> list[Object]:
    """Return the objects of a rendered release."""
    return objects_of(render_text(*values, release=release, namespace=namespace, settings=settings, api_versions=api_versions))


def objects_of(text: str) -> list[Object]:
    """Return the objects of a stream of YAML documents."""
    return [Object(Node(document)) for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


def containers_of(pod: Node) -> list[Node]:
    """Return all containers of a pod."""
    return [*pod["spec"].get("initContainers"), *pod["spec"]["containers"]]

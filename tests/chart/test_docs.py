"""The pages about deployment name things that are there."""

import re
from pathlib import Path

import pytest

from tests.chart.node import Node
from tests.chart.programs import ROOT, run
from tests.chart.test_alerts import ALERTS
from tests.chart.test_values import VALUES

PAGES = sorted([*(ROOT / "docs" / "deploy").glob("*.md"), *(ROOT / "docs" / "runbooks").glob("*.md"), ROOT / "k8s" / "README.md"])
pages = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
_SECTIONS = "|".join(key for key, _ in VALUES.entries())


@pages
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text())

    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


@pages
def test_every_value_that_is_named_is_there(page: Path) -> None:
    named = re.findall(rf"`((?:{_SECTIONS})(?:\.[a-zA-Z]+)+)", page.read_text())

    assert [name for name in named if not _has(VALUES, name.split(".")) and not name.endswith((".py", ".yaml", ".json"))] == []


def _has(node: Node, path: list[str]) -> bool:
    return not path or (path[0] in dict(node.entries()) and _has(node[path[0]], path[1:]))


def test_the_number_of_alerts_is_right() -> None:
    assert f"{len(ALERTS)} alerts, each with a test" in (ROOT / "docs" / "deploy" / "monitoring.md").read_text()


def test_prometheus_accepts_the_scrape_configuration(tmp_path: Path) -> None:
    # Debian's Prometheus is built without Kubernetes discovery, which is one line of it.
    discovery = "kubernetes_sd_configs: [{role: pod}]"
    text = (ROOT / "k8s" / "prometheus.yaml").read_text()
    (tmp_path / "prometheus.yaml").write_text(text.replace(discovery, "static_configs: [{targets: [localhost]}]"))

    assert discovery in text
    run(["promtool", "check", "config", "--syntax-only", tmp_path / "prometheus.yaml"])

"""The image is built the same way every time, runs as nobody, and carries the version of the package and the chart."""

import re
import tomllib

import yaml

from tests.chart.node import Node
from tests.chart.programs import CHART, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
FINAL = DOCKERFILE[DOCKERFILE.index("AS runtime") : DOCKERFILE.index("AS dev")]


def test_image_chart_and_package_have_one_version() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = Node(yaml.safe_load((CHART / "Chart.yaml").read_text()))

    assert (chart["version"].text, chart["appVersion"].text) == (package, package)
    assert re.findall(r"^ARG VERSION=(.*)", DOCKERFILE, re.MULTILINE) == [package]


def test_signals_reach_the_process_and_it_is_not_root() -> None:
    assert 'ENTRYPOINT ["sweephand"]' in FINAL
    assert re.findall(r"^USER (.*)", FINAL, re.MULTILINE) == ["10001:10001"]
    assert DOCKERFILE.rstrip().endswith("FROM runtime")


def test_nothing_is_installed_that_is_not_locked() -> None:
    installs = re.findall(r"pip install ([^&\n]*)", DOCKERFILE)

    assert installs
    assert all("--require-hashes" in options or "--no-deps" in options for options in installs)


def test_all_that_is_copied_passes_the_ignore_file() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.*) \S+$", DOCKERFILE, re.MULTILINE)
    sources = [source.replace("README.m[d]", "README.md") for sources in copied for source in sources.split()]

    assert len(sources) >= 7
    assert [source for source in sources if not any(source == name or source.startswith(f"{name}/") for name in allowed)] == []

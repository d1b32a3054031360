"""The dashboards are in step with their source, load without questions, and ask PromQL questions about series that exist."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from sweephand.settings import load_settings
from sweephand.telemetry import (
    ApiMetrics,
    BacklogMetrics,
    DatabaseMetrics,
    DispatcherMetrics,
    LeaderMetrics,
    WorkerMetrics,
    create_registry,
)
from tests.chart.node import Node
from tests.chart.programs import CHART, ROOT, run
from tests.chart.test_alerts import SOURCE

FILES = sorted((CHART / "files" / "dashboards").glob("*.json"))
VARIABLES = {"datasource", "namespace", "release", "queue", "sweep"}
_METRIC = re.compile(r"\b(?:sweephand|leader_election|process)_\w+")
_SUFFIX = re.compile(r"_(?:bucket|sum|count)$")

dashboards = pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)


def load(file: Path) -> Node:
    return Node(json.loads(file.read_text()))


def expressions(dashboard: Node) -> list[str]:
    """Return every question that a dashboard asks, with its variables filled in."""
    asked = [target["expr"].text for panel in dashboard["panels"] for target in panel.get("targets")]
    asked += [each["expr"].text for each in dashboard["annotations"]["list"]]
    return [re.sub(r"\$\w+", "x", text.replace("$__rate_interval", "5m")) for text in asked]


def exported() -> set[str]:
    """Return the names of all series that the processes have."""
    registry: CollectorRegistry = create_registry(load_settings(database_url="postgresql://nobody@localhost/none"))
    for group in (ApiMetrics, BacklogMetrics, DatabaseMetrics, DispatcherMetrics, LeaderMetrics, WorkerMetrics):
        group.create(registry)
    suffix = {"counter": "_total", "info": "_info"}
    return {metric.name + suffix.get(metric.type, "") for metric in registry.collect()}


def test_there_are_three_and_they_are_in_step_with_their_source(tmp_path: Path) -> None:
    run([ROOT / "tools" / "make_dashboards", tmp_path])

    assert [file.stem for file in FILES] == ["dispatch", "overview", "workers"]
    for file in FILES:
        assert file.read_text() == (tmp_path / file.name).read_text(), "run tools/make_dashboards"


@dashboards
def test_a_dashboard_loads_without_questions(file: Path) -> None:
    made = load(file)

    assert made.get("__inputs").value is None
    assert {each["name"].text for each in made["templating"]["list"]} == VARIABLES
    assert {each["name"].text for each in made["annotations"]["list"]} == {"Leader changes", "Deploys"}
    assert made["graphTooltip"].value == 1
    for panel in made["panels"]:
        assert panel["title"].text
        if panel["type"].text != "row":
            assert panel["datasource"]["uid"].text == "${datasource}"
            assert panel["description"].text.endswith("."), panel["title"].text


@dashboards
def test_no_two_panels_overlap_and_none_stands_out(file: Path) -> None:
    places = []
    for panel in load(file)["panels"]:
        x, y, w, h = (int(str(panel["gridPos"][key].value)) for key in "xywh")
        places.append((y, x, w, h))
        assert x + w <= 24, panel["title"].text

    for (y, x, w, h), (next_y, next_x, _, _) in pairwise(sorted(places)):
        assert (next_y == y and next_x >= x + w) or next_y >= y + min(h, 1), (y, x)
    assert len({load(file)["uid"].text for file in FILES}) == 3


@dashboards
def test_prometheus_understands_every_question(file: Path, tmp_path: Path) -> None:
    rules = [{"record": f"question:{number}", "expr": text} for number, text in enumerate(expressions(load(file)))]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "questions", "rules": rules}]}))

    run(["promtool", "check", "rules", "--lint=none", "rules.yaml"], directory=tmp_path)


def test_every_series_that_is_asked_for_is_exported() -> None:
    rules = [rule["expr"].text for group in SOURCE["groups"] for rule in group["rules"]]
    asked = [text for file in FILES for text in expressions(load(file))] + rules
    recorded = {rule["record"].text for group in SOURCE["groups"] for rule in group["rules"] if rule.get("record").value}
    names = {_SUFFIX.sub("", name) for text in asked for name in _METRIC.findall(_without(text, recorded))}

    assert names - exported() == set()


def test_every_series_of_ours_is_asked_for_somewhere() -> None:
    rules = [rule["expr"].text for group in SOURCE["groups"] for rule in group["rules"]]
    asked = " ".join([text for file in FILES for text in expressions(load(file))] + rules)
    ours = {name for name in exported() if name.startswith(("sweephand_", "leader_election"))}

    assert {name for name in ours if name not in asked} == set()


def _without(text: str, recorded: set[str]) -> str:
    for name in recorded:
        text = text.replace(name, "")
    return text

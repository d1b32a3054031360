"""The alerts fire when they should and only then: promtool runs alerts/*.yaml against the rules as the chart renders them.

That the tests would notice a wrong rule is tested too: each alert is changed in one place after the other, and every
such mutant must make one of its tests fail.
"""

import json
from pathlib import Path

import pytest
import yaml

from tests.chart.node import Node
from tests.chart.programs import CHART, ROOT, run, run_anyway
from tests.chart.rendering import render
from tests.chart.rule_mutants import Mutant, mutants_of

TEST_FILES = sorted((Path(__file__).parent / "alerts").glob("*.yaml"))
SOURCE = Node(yaml.safe_load((CHART / "files" / "rules.yaml").read_text()))
ALERTS = [rule["alert"].text for group in SOURCE["groups"] for rule in group["rules"] if rule.get("alert").value]

# Changes that no series can tell from the rule, and why.
EQUIVALENT = {
    # The short window only ends the alert. It holds a handful of samples, so the share of bad ones jumps past the
    # threshold, its half and its double at once, or a sample later from Prometheus 3 on (left-open ranges).
    ("SweephandBacklogAgeBurnFast", "comparison 2 with 7.2"),
    ("SweephandBacklogAgeBurnFast", "comparison 2 with 28.8"),
    ("SweephandBacklogAgeBurnSlow", "comparison 2 with 3.0"),
    ("SweephandBacklogAgeBurnSlow", "comparison 2 with 12.0"),
}


def rules(*, namespace: str = "q", release: str = "x") -> Node:
    """Return the rules that the chart renders for a release."""
    settings = ("monitoring.rules.mode=always",)
    made = render(CHART / "ci" / "default.yaml", release=release, namespace=namespace, settings=settings)
    return next(one.node["spec"] for one in made if one.kind == "PrometheusRule")


def write_rules(directory: Path, *, only: str | None = None, instead: Mutant | None = None) -> None:
    """Write the rules for promtool, with summaries as the only annotations: those are what the tests compare."""
    groups = []
    for group in rules()["groups"]:
        chosen = [rule for rule in group["rules"] if only is None or rule.get("alert").value in {None, only}]
        written = [instead.rule if instead and rule.get("alert").value else dict(_values(rule)) for rule in chosen]
        for rule in written:
            if "annotations" in rule:
                rule["annotations"] = {"summary": Node(rule["annotations"])["summary"].text}
        # Without an interval of their own all groups follow the test file's, in the order that it gives.
        groups.append({"name": group["name"].text, "rules": written})
    (directory / "rules.yaml").write_text(json.dumps({"groups": groups}))


def write_tests(directory: Path, *, only: str | None = None) -> list[Path]:
    """Write the test files, or what they ask of one alert; return those that ask anything."""
    written = []
    for file in TEST_FILES:
        content = yaml.safe_load(file.read_text())
        for test in content["tests"]:
            asked = [ask for ask in test["alert_rule_test"] if only in {None, ask["alertname"]}]
            test["alert_rule_test"] = asked
        content["tests"] = [test for test in content["tests"] if test["alert_rule_test"]]
        if content["tests"]:
            written.append(directory / file.name)
            written[-1].write_text(json.dumps(content))
    return written


def _values(node: Node) -> list[tuple[str, object]]:
    return [(key, child.value) for key, child in node.entries()]


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(rules().value))

    run(["promtool", "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"], directory=tmp_path)


@pytest.mark.parametrize("file", TEST_FILES, ids=lambda path: path.stem)
def test_the_alerts_fire_when_they_should(file: Path, tmp_path: Path) -> None:
    write_rules(tmp_path)
    write_tests(tmp_path)

    run(["promtool", "test", "rules", file.name], directory=tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("alert", ALERTS)
def test_a_change_of_the_rule_is_noticed(alert: str, tmp_path: Path) -> None:
    files = write_tests(tmp_path, only=alert)
    rule = next(rule for group in rules()["groups"] for rule in group["rules"] if rule.get("alert").value == alert)
    command: list[str | Path] = ["promtool", "test", "rules", *files]
    write_rules(tmp_path, only=alert)
    run(command, directory=tmp_path)

    survivors = []
    for mutant in mutants_of(rule):
        write_rules(tmp_path, only=alert, instead=mutant)
        if run_anyway(command, directory=tmp_path).returncode == 0 and (alert, mutant.change) not in EQUIVALENT:
            survivors.append(mutant.change)

    assert survivors == []


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_has_a_test_that_fires_it_and_one_that_does_not(alert: str) -> None:
    asked = [
        ask
        for file in TEST_FILES
        for test in Node(yaml.safe_load(file.read_text()))["tests"]
        for ask in test["alert_rule_test"]
        if ask["alertname"].text == alert
    ]

    assert {bool(ask["exp_alerts"].value) for ask in asked} == {True, False}


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_has_a_runbook_and_says_what_is_wrong(alert: str) -> None:
    rule = next(rule for group in rules()["groups"] for rule in group["rules"] if rule.get("alert").value == alert)
    annotations = rule["annotations"].texts
    page = ROOT / "docs" / "runbooks" / f"{alert}.md"

    assert annotations["runbook_url"] == f"docs/runbooks/{alert}.md"
    assert annotations["summary"].endswith(".")
    assert annotations["description"].endswith(".")
    assert page.read_text().startswith(f"# {alert}\n")
    for heading in ("## What it means", "## What to look at", "## What to do"):
        assert heading in page.read_text()


def test_every_runbook_belongs_to_an_alert() -> None:
    assert {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README"} == set(ALERTS)


def test_two_releases_have_rules_of_their_own() -> None:
    text = json.dumps(rules(namespace="one", release="shop").value)

    assert 'namespace=\\"one\\", release=\\"shop\\"' in text
    assert not [word for word in ("SCOPE", "LEASE_NAME", "_SECONDS", "RUNBOOKS") if word in text]


def test_values_change_thresholds_labels_and_which_alerts_there_are() -> None:
    made = render(CHART / "ci" / "monitoring.yaml")
    spec = next(one.node["spec"] for one in made if one.kind == "PrometheusRule")
    alerts = {rule["alert"].text: rule for group in spec["groups"] for rule in group["rules"] if rule.get("alert").value}

    assert set(ALERTS) - set(alerts) == {"SweephandTickLagHigh"}
    assert {rule["labels"]["team"].text for rule in alerts.values()} == {"orders"}
    assert "> bool 120" in json.dumps(spec.value)
    assert alerts["SweephandTickMissed"]["annotations"]["runbook_url"].text == (
        "https://runbooks.example.com/sweephand/SweephandTickMissed.md"
    )

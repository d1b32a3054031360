"""Change one thing in an alert, so that a test can ask whether anyone would notice."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.chart.node import Node

_COMPARISON = re.compile(r" (>|<|==) (?:bool )?([0-9.]+)")
_FLIPPED = {">": "<", "<": ">", "==": "!="}
_JOINED = re.compile(r"\s+(unless|and|or)\b")
_MATCHER = re.compile(r', (reason|state|code|outcome|against|name)(=|!=|=~)"[^"]*"')
_WINDOW = re.compile(r"\[(\d+)([mh])\]")
_BY = re.compile(r"by \(namespace, release, (\w+)")
_SEVERITIES = {"critical": "warning", "warning": "critical"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """An alert with one change, and what it is."""

    change: str
    rule: dict[str, object]


def mutants_of(alert: Node) -> Iterator[Mutant]:
    """Return the alert with each single change that its tests should notice."""
    rule = {key: child.value for key, child in alert.entries()}
    labels = alert["labels"].texts
    yield Mutant("severity swapped", {**rule, "labels": {**labels, "severity": _SEVERITIES[labels["severity"]]}})
    if "for" in rule:
        yield Mutant("fires at once", {key: value for key, value in rule.items() if key != "for"})
        yield Mutant("fires thrice as late", {**rule, "for": _thrice(alert["for"].text)})
    for change, expression in _expressions(alert["expr"].text):
        yield Mutant(change, {**rule, "expr": expression})


def _expressions(expression: str) -> Iterator[tuple[str, str]]:
    for place, found in enumerate(_COMPARISON.finditer(expression), start=1):
        operator, number = found.groups()
        yield f"comparison {place} flipped", _put(found, 1, _FLIPPED[operator])
        for changed in (str(float(number) * 2), str(float(number) / 2)) if float(number) > 1 else (str(float(number) + 2),):
            yield f"comparison {place} with {changed}", _put(found, 2, changed)
    parts = _JOINED.split(expression)
    if len(parts) == 3:
        yield f"without what follows {parts[1]}", parts[0]
        if parts[1] == "or":
            yield "without what comes before or", parts[2]
    for found in _MATCHER.finditer(expression):
        yield f"any {found[1]}", _put(found, 0, "")
    for found in _WINDOW.finditer(expression):
        minutes = int(found[1]) * (60 if found[2] == "h" else 1)
        yield f"{found[0]} four times as long", _put(found, 0, f"[{minutes * 4}m]")
        yield f"{found[0]} a quarter as long", _put(found, 0, f"[{minutes * 15}s]")
    for found in _BY.finditer(expression):
        yield f"not by {found[1]}", _put(found, 0, "by (namespace, release")


def _put(found: re.Match[str], group: int, text: str) -> str:
    start, end = found.span(group)
    return found.string[:start] + text + found.string[end:]


def _thrice(duration: str) -> str:
    number, unit = re.fullmatch(r"(\d+)([sm])", duration).groups()  # type: ignore[union-attr]  # the rules use no others
    return f"{int(number) * 3}{unit}"

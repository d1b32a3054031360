"""Ask a Prometheus what it recorded of a shop: how counters rose, and which alerts' expressions were true."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import httpx

from e2e.system.kubernetes import as_list, as_mapping, at
from tests.support.waiting import until

SCRAPE_SECONDS = 2
_BEFORE = timedelta(minutes=2)
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Series:
    """Be the samples of one series: moments as Unix times, and values."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]

    def increase(self, *, since: float) -> float:
        """Return how much a counter rose after a moment; from 0 where it began or was reset after it."""
        risen, previous = 0.0, 0.0
        for moment, value in self.samples:
            if moment > since:
                risen += value - previous if value >= previous else value
            previous = value
        return risen


class Scrapes:
    """Be what Prometheus has of one shop."""

    def __init__(self, url: Callable[[], str], *, namespace: str, release: str, rules: list[Mapping[str, object]]) -> None:
        """Take where Prometheus is found now, the labels of the shop's series, and the groups of rules made for it."""
        self._url = url
        self._scope = {"namespace": namespace, "release": release}
        self._expressions = {
            str(at(rule, "alert")): str(at(rule, "expr"))
            for group in rules
            for rule in as_list(group["rules"])
            if at(rule, "alert")
        }

    def series(self, metric: str, *, since: datetime, **labels: str) -> list[Series]:
        """Return the raw samples of a metric from a while before a moment until now."""
        selector = ",".join(f'{name}="{value}"' for name, value in {**self._scope, **labels}.items())
        seconds = int((datetime.now(since.tzinfo) - since + _BEFORE).total_seconds())
        found = self._ask("query", query=f"{metric}{{{selector}}}[{seconds}s]")
        return [
            Series(
                labels={name: str(value) for name, value in as_mapping(at(one, "metric")).items()},
                samples=tuple((float(str(at(sample, 0))), float(str(at(sample, 1)))) for sample in as_list(at(one, "values"))),
            )
            for one in found
        ]

    def increase(self, metric: str, *, since: datetime, **labels: str) -> float:
        """Return how much a counter rose since a moment, over all processes, those included that came and went."""
        return sum(one.increase(since=since.timestamp()) for one in self.series(metric, since=since, **labels))

    def wait_for_increase(self, metric: str, by: float, *, since: datetime, **labels: str) -> None:
        """Wait until a counter has risen by this much since a moment, and fail if it rose by more."""
        risen = 0.0

        def is_there() -> bool:
            nonlocal risen
            risen = self.increase(metric, since=since, **labels)
            return risen >= by

        until(is_there, deadline_seconds=_PATIENCE_SECONDS, every_seconds=1, message=f"{metric} rises by {by:g}")
        assert risen == by, f"{metric}{labels} rose by {risen:g}, not by {by:g}"

    def alerts_raised(self, *, since: datetime) -> set[str]:
        """Return the alerts whose expression became true after a moment, however briefly: before any `for` of theirs."""
        return {name for name, expression in self._expressions.items() if self._became_true(expression, since=since)}

    def alerts_fired(self, *, since: datetime) -> set[str]:
        """Return the alerts that fired after a moment: whose expression was true for as long as their `for` says."""
        selector = ",".join(f'{name}="{value}"' for name, value in self._scope.items())
        firing = self._range(f'ALERTS{{{selector},alertstate="firing"}}', since=since)
        return {str(at(one, "metric", "alertname")) for one in firing}

    def wait_for_alert(self, name: str, *, since: datetime) -> None:
        """Wait until an alert's expression is true over what was scraped since a moment."""
        until(
            lambda: self._is_true_at(self._expressions[name], since=since),
            deadline_seconds=_PATIENCE_SECONDS,
            every_seconds=2,
            message=f"the expression of {name} is true",
        )

    def _became_true(self, expression: str, *, since: datetime) -> bool:
        before = self._ask("query", query=expression, time=since.timestamp())
        known = {json.dumps(at(one, "metric"), sort_keys=True) for one in before}
        return any(json.dumps(at(one, "metric"), sort_keys=True) not in known for one in self._range(expression, since=since))

    def _is_true_at(self, expression: str, *, since: datetime) -> bool:
        return bool(self._range(expression, since=since))

    def _range(self, expression: str, *, since: datetime) -> list[object]:
        start = since.timestamp() + SCRAPE_SECONDS
        end = max(start, datetime.now(since.tzinfo).timestamp())
        return self._ask("query_range", query=expression, start=start, end=end, step=SCRAPE_SECONDS)

    def _ask(self, question: str, **parameters: str | float) -> list[object]:
        """Return the result of a query, waiting for a Prometheus that is away."""
        answer: dict[str, object] = {}

        def try_to_ask() -> bool:
            nonlocal answer
            try:
                response = httpx.get(f"{self._url()}/api/v1/{question}", params=parameters, timeout=30)
            except httpx.HTTPError:
                return False
            answer = as_mapping(response.json())
            return True

        until(try_to_ask, deadline_seconds=_PATIENCE_SECONDS, every_seconds=0.5, message="Prometheus answers")
        assert answer["status"] == "success", answer
        return as_list(at(answer, "data", "result"))

"""A real Prometheus scrapes the real processes: every series that a rule or a dashboard asks for is there."""

import json
import re
import time
from pathlib import Path

import httpx
import pytest

from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.stuck_publications import insert_stuck_products
from tests.chart.programs import program
from tests.chart.test_alerts import rules
from tests.chart.test_dashboards import FILES, expressions, load
from tests.support.network import free_port
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

STOREFRONT = "storefront.app:create_app"
LEASE_NAME = "x-sweephand-dispatcher"
_NAME = re.compile(r"\b(?:sweephand_|leader_election_|process_|namespace_release_)[\w:]+")


def asked_for() -> set[str]:
    """Return the names of all series in rules and dashboards."""
    texts = [rule["expr"].text for group in rules()["groups"] for rule in group["rules"]]
    texts += [text for file in FILES for text in expressions(load(file))]
    return {name for text in texts for name in _NAME.findall(text)}


def served(process: RunningCommand) -> str:
    """Return where a process serves its metrics."""
    port = re.search(r"metrics_port=(\d+)", process.wait_for_log("metrics_port=", deadline_seconds=60))
    assert port
    return f"127.0.0.1:{port[1]}"


def post_product(api: RunningCommand) -> None:
    url = re.search(r"url=(\S+)", api.wait_for_log("url=", deadline_seconds=60))
    assert url
    product = {"name": "Lamp", "description": "Bright", "price_cents": 100}
    assert httpx.post(f"{url[1]}/api/v1/products", json=product, timeout=10).status_code == 201


def answer(url: str) -> dict[str, object]:
    """Return what Prometheus answers, or nothing while it starts."""
    try:
        content: dict[str, object] = httpx.get(url, timeout=10).json()
    except httpx.HTTPError:
        return {}
    return content


def names(url: str) -> set[str]:
    """Return the names of the series that Prometheus has."""
    data = answer(f"{url}/api/v1/label/__name__/values").get("data")
    return set(data) if isinstance(data, list) else set()


def start_prometheus(directory: Path, targets: dict[str, list[str]]) -> tuple[RunningCommand, str]:
    """Start Prometheus with the chart's rules, and targets under the labels that the chart's monitors give them."""
    scraped = [
        {
            "targets": [address],
            "labels": {"namespace": "q", "release": "x", "component": component, "pod": f"{component}-{number}"},
        }
        for component, addresses in targets.items()
        for number, address in enumerate(addresses)
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(directory / "rules.yaml")],
        "scrape_configs": [{"job_name": "sweephand", "static_configs": scraped}],
    }
    fast = [{**{key: child.value for key, child in group.entries()}, "interval": "1s"} for group in rules()["groups"]]
    (directory / "rules.yaml").write_text(json.dumps({"groups": fast}))
    (directory / "prometheus.yaml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    started = RunningCommand.start(
        [
            program("prometheus"), f"--config.file={directory}/prometheus.yaml", f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address={address}",
        ],
        env={}, log_path=directory / "prometheus.log",
    )  # fmt: skip
    return started, f"http://{address}"


@pytest.mark.timeout(400)
def test_every_series_that_is_asked_for_is_scraped(commands: Commands, database_url: str, tmp_path: Path) -> None:
    quick = {
        "STUCK_PUBLICATIONS_SCAN_INTERVAL": "1",
        "WAREHOUSE_MIN_DELAY": "0",
        "WAREHOUSE_MAX_DELAY": "0",
        "SWEEPHAND_ELECTOR": "postgres",
        "SWEEPHAND_LEASE_NAME": LEASE_NAME,
        "SWEEPHAND_LEASE_DURATION_SECONDS": "3",
        "SWEEPHAND_RENEW_DEADLINE_SECONDS": "2",
        "SWEEPHAND_RETRY_PERIOD_SECONDS": "0.5",
    }
    assert commands.start("migrate", app=STOREFRONT, env=quick).wait(deadline_seconds=60) == 0
    api, worker = (commands.start(name, app=STOREFRONT, env=quick) for name in ("api", "worker"))
    killed = commands.start("dispatcher", app=STOREFRONT, env=quick)
    killed.wait_for_log("term_began", deadline_seconds=60)
    killed.kill()
    died_at = time.monotonic()
    until(lambda: time.monotonic() - died_at > 3, message="ticks are missed")
    dispatcher = commands.start("dispatcher", app=STOREFRONT, env=quick)
    targets = {"api": [served(api)], "worker": [served(worker)], "dispatcher": [served(dispatcher)]}
    prometheus, url = start_prometheus(tmp_path, targets)
    missing: set[str] = set()

    def all_there() -> bool:
        nonlocal missing
        missing = asked_for() - names(url)
        return not missing

    try:
        api.wait_for_log("database_found_ready", deadline_seconds=60)
        post_product(api)
        # Only once the counters have been scraped at 0 is there a rate of what the sweep enqueues.
        until(lambda: "sweephand_dispatcher_enqueued_total" in names(url), deadline_seconds=60, message="it is scraped")
        engine = postgres_engine(database_url)
        insert_stuck_products(engine, count=3)
        engine.dispose()
        # Past this the list of what is missing says more than the deadline would.
        until(lambda: all_there() or time.monotonic() - died_at > 150, deadline_seconds=200, message="series are scraped")
        groups = json.dumps(answer(f"{url}/api/v1/rules"))
    finally:
        prometheus.destroy()

    assert missing == set()
    assert '"health": "err"' not in groups
    assert groups.count('"health": "ok"') > 20

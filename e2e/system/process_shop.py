"""Run a shop as processes of this machine, on an embedded PostgreSQL, with a Lease on a fake API server."""

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from e2e.system.cluster_prometheus import RELEASE, shop_rules
from e2e.system.kubernetes import as_mapping, at
from e2e.system.ledger import Ledger
from e2e.system.process_prometheus import ProcessPrometheus
from e2e.system.scrapes import Scrapes
from e2e.system.shop import Diary, Load, Timings
from sweephand.postgres.embedded import EmbeddedPostgres
from tests.support.fake_lease_api import ApiFault, FakeLeaseApi
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

APP = "storefront.app:create_app"
NAMESPACE = "processes"
LEASE = f"{RELEASE}-sweephand-dispatcher"
_TIMINGS = Timings(lease=4, retry=0.5, interval=2, outage=10, short_outage=5, silence=5, long_job=5)
_START_SECONDS = 60


class ProcessShop:
    """Be the shop on this machine: an API, and at first two dispatchers and one worker. A context manager. See `Shop`."""

    def __init__(self, directory: Path, *, values: Mapping[str, object]) -> None:
        """Describe the shop; entering it starts it. Of the chart's `values` those of `app.env` count."""
        self._directory = directory
        self._app_env = {name: str(value) for name, value in as_mapping(at(values, "app", "env")).items()}
        interval = float(self._app_env.get("STUCK_PUBLICATIONS_SCAN_INTERVAL", _TIMINGS.interval))
        self.timings = replace(_TIMINGS, interval=interval)
        self.diary = Diary()
        self._resources = ExitStack()
        self._postgres = EmbeddedPostgres(is_durable=False)
        self._prometheus = ProcessPrometheus(directory, namespace=NAMESPACE, release=RELEASE)
        self._url = ""
        self._running: dict[str, list[RunningCommand]] = {"api": [], "worker": [], "dispatcher": []}
        self.ledger = Ledger(lambda: self._url, interval_seconds=self.timings.interval)
        self.scrapes = Scrapes(self._prometheus.url, namespace=NAMESPACE, release=RELEASE, rules=shop_rules(NAMESPACE))
        self._api_server = FakeLeaseApi()

    def __enter__(self) -> Self:
        with ExitStack() as resources:
            self._url = resources.enter_context(self._postgres)
            resources.enter_context(self._api_server)
            self._commands = Commands(self._directory, database_url=self._url)
            resources.callback(self._commands.destroy_all)
            assert self._commands.start("migrate", app=APP).wait(deadline_seconds=_START_SECONDS) == 0
            self._start("api")
            self._start("worker")
            self._start("dispatcher")
            until(self.lease_holder, deadline_seconds=_START_SECONDS, message="a dispatcher leads")
            self._start("dispatcher")
            resources.enter_context(self._prometheus)
            self._resources = resources.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._resources.close()

    def create_product(self) -> int:
        url = self._api_url()
        product = {"name": "Lamp", "description": "Bright", "price_cents": 100}

        def try_to_create() -> int | None:
            answer = httpx.post(f"{url}/api/v1/products", json=product, timeout=10)
            return int(str(as_mapping(answer.json())["id"])) if answer.status_code == 201 else None

        made = until(try_to_create, deadline_seconds=60, every_seconds=0.2, message="POST /api/v1/products answers 201")
        assert made is not None
        return made

    @contextmanager
    def load(self, *, per_second: float) -> Iterator[Load]:
        load = Load()
        program = Path(__file__).parents[1] / "load.py"
        command = [sys.executable, str(program), self._api_url(), f"{per_second:g}"]
        running = RunningCommand.start(command, env={}, log_path=self._directory / "load.log")
        try:
            running.wait_for_log("load begins")
            self.diary.note(f"{per_second:g} products a second are created")
            yield load
            running.kill(signal.SIGTERM)
            running.wait()
            said = as_mapping(json.loads(running.log.splitlines()[-1]))
        finally:
            running.destroy()
        load.take(said)
        self.diary.note(f"{len(load.created)} products were created, {len(load.refused)} requests refused")

    def readiness(self, component: str) -> str:
        return httpx.get(f"{_metrics_url(self._running[component][0])}/readyz", timeout=20).text

    def lease_holder(self) -> str | None:
        return self._api_server.holder(LEASE) or None

    def restarts(self) -> int:
        """Return how many processes ended that nobody here ended."""
        return sum(not one.is_running() for ones in self._running.values() for one in ones)

    def logs(self, component: str) -> str:
        return "\n".join(one.log for one in self._running[component])

    def roll_dispatchers(self) -> None:
        self.diary.note("rolling update of the dispatchers")
        for old in tuple(self._running["dispatcher"]):
            self._start("dispatcher")
            self._end(old, "dispatcher")
        self.diary.note("rolled")

    def stop_leader(self) -> datetime:
        leader = self._leader()
        at_moment = self.diary.note(f"SIGTERM to the leader, {leader.name}")
        leader.kill(signal.SIGTERM)
        self._replace(leader, "dispatcher")
        return at_moment

    def kill_leader(self) -> datetime:
        leader = self._leader()
        at_moment = self.diary.note(f"SIGKILL to the leader, {leader.name}")
        leader.kill(signal.SIGKILL)
        self._replace(leader, "dispatcher")
        return at_moment

    @contextmanager
    def frozen_leader(self) -> Iterator[datetime]:
        leader = self._leader()
        leader.kill(signal.SIGSTOP)
        try:
            yield self.diary.note(f"the leader is frozen, {leader.name}")
        finally:
            leader.kill(signal.SIGCONT)
            self.diary.note("thawed")

    def scale_dispatchers(self, count: int) -> None:
        self._scale("dispatcher", count)

    def scale_workers(self, count: int) -> None:
        self._scale("worker", count)

    def replace_workers(self) -> None:
        self.diary.note("rolling update of the workers")
        for old in tuple(self._running["worker"]):
            self._start("worker")
            self._end(old, "worker")
        self.diary.note("the workers are new")

    @contextmanager
    def slow_warehouse(self, *, seconds: float) -> Iterator[None]:
        delay = f"{seconds:g}"
        self._app_env |= {"WAREHOUSE_MIN_DELAY": delay, "WAREHOUSE_MAX_DELAY": delay}
        self.replace_workers()
        try:
            yield
        finally:
            del self._app_env["WAREHOUSE_MIN_DELAY"], self._app_env["WAREHOUSE_MAX_DELAY"]
            self.replace_workers()

    def api_server_paused(self) -> "_Fault":
        return _Fault(self, ApiFault.HANG, "the API server is paused", "the API server answers again")

    def lease_forbidden(self) -> "_Fault":
        return _Fault(self, ApiFault.FORBIDDEN, "the right to the Lease is gone", "the right is back")

    def kill_postgres(self) -> datetime:
        at_moment = self.diary.note("SIGKILL to PostgreSQL")
        self._postgres.stop(is_crash=True)
        self._url = self._postgres.start()
        return at_moment

    @contextmanager
    def postgres_stopped(self) -> Iterator[datetime]:
        at_moment = self.diary.note("PostgreSQL is stopped")
        self._postgres.stop()
        try:
            yield at_moment
        finally:
            self._url = self._postgres.start()
            self.diary.note("PostgreSQL is back")

    def set_fault(self, fault: ApiFault) -> None:
        """Switch a fault of the API server on, or off with ApiFault.NONE."""
        self._api_server.fault = fault

    def _leader(self) -> RunningCommand:
        def leading() -> RunningCommand | None:
            holder = self.lease_holder()
            return next((one for one in self._running["dispatcher"] if holder and f"identity={holder}" in one.log), None)

        found = until(leading, deadline_seconds=_START_SECONDS, message="a dispatcher holds the Lease")
        assert found is not None
        return found

    def _start(self, component: str) -> RunningCommand:
        env = {
            "SWEEPHAND_ELECTOR": "kubernetes",
            "SWEEPHAND_KUBERNETES_API_URL": self._api_server.url,
            "SWEEPHAND_LEASE_NAMESPACE": "default",
            "SWEEPHAND_LEASE_NAME": LEASE,
            "SWEEPHAND_LEASE_DURATION_SECONDS": f"{self.timings.lease:g}",
            "SWEEPHAND_RENEW_DEADLINE_SECONDS": f"{self.timings.lease * 2 / 3:g}",
            "SWEEPHAND_RETRY_PERIOD_SECONDS": f"{self.timings.retry:g}",
            "SWEEPHAND_ENVIRONMENT": "development",
            "STUCK_PUBLICATIONS_SCAN_INTERVAL": f"{self.timings.interval:g}",
            "WAREHOUSE_MIN_DELAY": "0",
            "WAREHOUSE_MAX_DELAY": "0.2",
            **self._app_env,
        }
        started = self._commands.start(component, app=APP, env=env)
        url = _metrics_url(started)
        until(_is_ready(url), deadline_seconds=_START_SECONDS, every_seconds=0.1, message=f"{started.name} is ready")
        self._running[component].append(started)
        self._prometheus.add(started.name, component=component, address=url.removeprefix("http://"))
        return started

    def _api_url(self) -> str:
        found = re.search(r"url=(\S+)", self._running["api"][0].wait_for_log("url=", deadline_seconds=_START_SECONDS))
        assert found
        return found[1]

    def _end(self, running: RunningCommand, component: str) -> None:
        running.kill(signal.SIGTERM)
        self._wait_for_end(running, component)

    def _wait_for_end(self, running: RunningCommand, component: str) -> None:
        assert running.wait(deadline_seconds=_START_SECONDS) == 0, running.log
        self._forget(running, component)

    def _replace(self, ended: RunningCommand, component: str) -> None:
        self._start(component)
        ended.wait(deadline_seconds=_START_SECONDS)
        self._forget(ended, component)

    def _forget(self, ended: RunningCommand, component: str) -> None:
        self._running[component].remove(ended)
        self._prometheus.remove(ended.name)

    def _scale(self, component: str, count: int) -> None:
        self.diary.note(f"{component}s are scaled to {count}")
        running = tuple(self._running[component])
        for surplus in running[count:]:
            surplus.kill(signal.SIGTERM)
        for surplus in running[count:]:
            self._wait_for_end(surplus, component)
        for _ in range(count - len(running)):
            self._start(component)
        self.diary.note(f"{component}s are {count}")


class _Fault:
    """Be a fault of the API server for a block."""

    def __init__(self, shop: ProcessShop, fault: ApiFault, begun: str, ended: str) -> None:
        self._shop = shop
        self._fault = fault
        self._begun = begun
        self._ended = ended

    def __enter__(self) -> datetime:
        self._shop.set_fault(self._fault)
        return self._shop.diary.note(self._begun)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._shop.set_fault(ApiFault.NONE)
        self._shop.diary.note(self._ended)


def _metrics_url(running: RunningCommand) -> str:
    port = re.search(r"metrics_port=(\d+)", running.wait_for_log("metrics_port=", deadline_seconds=_START_SECONDS))
    assert port
    return f"http://127.0.0.1:{port[1]}"


def _is_ready(url: str) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    return ask

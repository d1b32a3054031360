"""Run a shop on the cluster by the chart, and do to it what clusters do."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import httpx

from e2e.system import nodes
from e2e.system.cluster_prometheus import RELEASE, ClusterPrometheus, scrape_services, shop_rules
from e2e.system.kubernetes import PortForward, as_mapping, at, name_of
from e2e.system.ledger import Ledger
from e2e.system.release import PATIENCE_SECONDS, Release, one_pod
from e2e.system.scrapes import Scrapes
from e2e.system.shop import Diary, Load, Timings
from tests.support.waiting import until

_PASSWORD = "try"  # noqa: S105 that of k8s/overlays/dev, for a database that only this cluster reaches


class ClusterShop:
    """Be the shop in one namespace. See the protocol Shop."""

    def __init__(
        self,
        namespace: str,
        *,
        directory: Path,
        prometheus: ClusterPrometheus,
        values: Mapping[str, object],
        release: str = RELEASE,
    ) -> None:
        """Describe the shop; `install` makes it. `values` are the chart's that differ from e2e/values.json."""
        self.release = Release(release, namespace=namespace, values=values)
        self.kubectl = self.release.kubectl
        self._directory = directory
        settings = as_mapping(json.loads((Path(__file__).parents[1] / "values.json").read_text(encoding="utf-8")))
        env = {**as_mapping(at(settings, "app", "env")), **as_mapping(at(values, "app", "env"))}
        election = as_mapping(at(settings, "dispatcher", "election"))
        self.timings = Timings(
            lease=float(str(election["leaseDurationSeconds"])),
            retry=float(str(election["retryPeriodSeconds"])),
            interval=float(str(env["STUCK_PUBLICATIONS_SCAN_INTERVAL"])),
            outage=180,
            short_outage=60,
            silence=45,
            long_job=40,
        )
        self.diary = Diary()
        prefix = self.release.prefix
        self._api = PortForward(self.kubectl, f"service/{prefix}-api", port=80, log_path=directory / "api-forward.log")
        self._postgres = PortForward(
            self.kubectl, f"service/{prefix}-postgres", port=5432, log_path=directory / "postgres-forward.log"
        )
        self.ledger = Ledger(self.database_url, interval_seconds=self.timings.interval)
        self.scrapes = Scrapes(prometheus.url, namespace=namespace, release=release, rules=shop_rules(namespace))

    def install(self) -> None:
        """Install the release, and let Prometheus find it."""
        self.kubectl.ensure_namespace()
        self.kubectl.apply(*scrape_services(self.kubectl.namespace))
        self.release.install()

    def close(self) -> None:
        """Close the ways to it."""
        self._api.close()
        self._postgres.close()

    def database_url(self) -> str:
        """Return where PostgreSQL is found now."""
        return f"postgresql://sweephand:{_PASSWORD}@{self._postgres.address()}/sweephand"

    def create_product(self) -> int:
        product = {"name": "Lamp", "description": "Bright", "price_cents": 100}

        def try_to_create() -> int | None:
            try:
                answer = httpx.post(f"http://{self._api.address()}/api/v1/products", json=product, timeout=10)
            except httpx.HTTPError:
                self._api.close()
                return None
            return int(str(as_mapping(answer.json())["id"])) if answer.status_code == 201 else None

        made = until(try_to_create, deadline_seconds=60, every_seconds=0.5, message="POST /api/v1/products answers 201")
        assert made is not None
        return made

    @contextmanager
    def load(self, *, per_second: float) -> Iterator[Load]:
        load = Load()
        name = "load"
        script = (Path(__file__).parents[1] / "load.py").read_text(encoding="utf-8")
        arguments = [f"http://{self.release.prefix}-api", f"{per_second:g}"]
        self.kubectl.apply(one_pod(name, ["python", "-c", script, *arguments]))
        try:
            self._wait_for_log(name, "load begins")
            self.diary.note(f"{per_second:g} products a second are created")
            yield load
            self.kubectl.run("exec", name, "--", "sh", "-c", "kill -TERM 1")
            said = as_mapping(json.loads(self._wait_for_log(name, "created")))
        finally:
            self.kubectl.run("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found")
        load.take(said)
        self.diary.note(f"{len(load.created)} products were created, {len(load.refused)} requests refused")

    def readiness(self, component: str) -> str:
        pod = name_of(self.release.pods(component)[0])
        way = PortForward(self.kubectl, f"pod/{pod}", port=9090, log_path=self._directory / "readiness-forward.log")
        try:
            return httpx.get(f"http://{way.address()}/readyz", timeout=20).text
        finally:
            way.close()

    def lease_holder(self) -> str | None:
        found = self.kubectl.items("leases", "--field-selector", f"metadata.name={self.release.prefix}-dispatcher")
        holder = at(found[0], "spec", "holderIdentity") if found else None
        return str(holder) if holder else None

    def leader_pod(self) -> str:
        """Return the name of the pod that holds the Lease, waiting for one that is there."""

        def leading() -> str | None:
            # An identity is the pod's name and a random end.
            name = (self.lease_holder() or "").rpartition("_")[0]
            return name if name in self.release.ready_pods("dispatcher") else None

        found = until(leading, deadline_seconds=PATIENCE_SECONDS, every_seconds=0.5, message="a dispatcher holds the Lease")
        assert found is not None
        return found

    def restarts(self) -> int:
        return self.release.restarts()

    def logs(self, component: str) -> str:
        return self.release.logs(component)

    def roll_dispatchers(self) -> None:
        self.diary.note("rolling update of the dispatchers")
        self.release.roll("dispatcher")
        self.diary.note("rolled")

    def stop_leader(self) -> datetime:
        pod = self.leader_pod()
        at_moment = self.diary.note(f"SIGTERM to the leader, {pod}")
        self.kubectl.run("delete", "pod", pod, "--wait=false")
        return at_moment

    def kill_leader(self) -> datetime:
        pod = self.leader_pod()
        at_moment = self.diary.note(f"SIGKILL to the leader, {pod}")
        nodes.signal_pod(self.kubectl, pod, "KILL")
        return at_moment

    @contextmanager
    def frozen_leader(self) -> Iterator[datetime]:
        pod = self.leader_pod()
        nodes.signal_pod(self.kubectl, pod, "STOP")
        try:
            yield self.diary.note(f"the leader is frozen, {pod}")
        finally:
            nodes.signal_pod(self.kubectl, pod, "CONT")
            self.diary.note("thawed")

    def scale_dispatchers(self, count: int) -> None:
        self._scale("dispatcher", count)

    def scale_workers(self, count: int) -> None:
        self._scale("worker", count)

    def replace_workers(self) -> None:
        self.diary.note("rolling update of the workers")
        self.release.roll("worker")
        self.diary.note("the workers are new")

    @contextmanager
    def slow_warehouse(self, *, seconds: float) -> Iterator[None]:
        self._set_delay(f"{seconds:g}")
        try:
            yield
        finally:
            self._set_delay("0")

    def _set_delay(self, seconds: str) -> None:
        self.release.set_env("worker", WAREHOUSE_MAX_DELAY=seconds, WAREHOUSE_MIN_DELAY=seconds)

    @contextmanager
    def api_server_paused(self) -> Iterator[datetime]:
        with nodes.api_server_paused():
            yield self.diary.note("the API server is paused")
        self.diary.note("the API server answers again")
        # What is asked next must not find it still busy with what has piled up.
        until(self._answers, deadline_seconds=120, every_seconds=1, message="the API server answers kubectl")

    @contextmanager
    def lease_forbidden(self) -> Iterator[datetime]:
        name = f"{self.release.prefix}-dispatcher"
        binding = self.kubectl.get("rolebinding", name)
        metadata = as_mapping(binding["metadata"])
        kept = {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}
        self.kubectl.run("delete", "rolebinding", name)
        try:
            yield self.diary.note("the RoleBinding is deleted")
        finally:
            self.kubectl.apply({**binding, "metadata": kept})
            self.diary.note("the RoleBinding is back")

    def kill_postgres(self) -> datetime:
        at_moment = self.diary.note("SIGKILL to PostgreSQL")
        nodes.signal_pod(self.kubectl, f"{self.release.prefix}-postgres-0", "KILL")
        return at_moment

    @contextmanager
    def postgres_stopped(self) -> Iterator[datetime]:
        at_moment = self.diary.note("PostgreSQL is stopped")
        self.release.scale_postgres(0)
        self._postgres.close()
        try:
            yield at_moment
        finally:
            self.release.scale_postgres(1)
            self.diary.note("PostgreSQL is back")

    def _answers(self) -> bool:
        return bool(self.kubectl.items("pods"))

    def _wait_for_log(self, pod: str, text: str) -> str:
        """Return the last line of a pod's log once it has a text in it."""

        def line() -> str | None:
            lines = self.kubectl.run("logs", pod, "--ignore-errors").splitlines()
            return lines[-1] if lines and text in lines[-1] else None

        found = until(line, deadline_seconds=60, every_seconds=0.5, message=f"{pod} logs {text!r}")
        assert found is not None
        return found

    def _scale(self, component: str, count: int) -> None:
        self.diary.note(f"{component}s are scaled to {count}")
        self.release.scale(component, count)
        self.diary.note(f"{component}s are {count}")

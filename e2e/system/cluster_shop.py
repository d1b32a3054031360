"""Run a shop on the cluster by the chart, and do to it what clusters do."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import httpx

from e2e.system import nodes
from e2e.system.cluster_prometheus import RELEASE, ClusterPrometheus, scrape_services, shop_rules
from e2e.system.commands import run
from e2e.system.kubernetes import Kubectl, Manifest, PortForward, as_list, as_mapping, at, name_of
from e2e.system.ledger import Ledger
from e2e.system.scrapes import Scrapes
from e2e.system.shop import Diary, Load, Timings
from tests.support.waiting import until

CHART = "charts/sweephand"
IMAGE_TAG = "e2e"
_PASSWORD = "try"  # noqa: S105 that of k8s/overlays/dev, for a database that only this cluster reaches
_PATIENCE_SECONDS = 240


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
        self.kubectl = Kubectl(namespace)
        self.release = release
        self.prefix = release if "sweephand" in release else f"{release}-sweephand"  # as the chart names things
        self._directory = directory
        self._values = dict(values)
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
        self._api = PortForward(self.kubectl, f"service/{self.prefix}-api", port=80, log_path=directory / "api-forward.log")
        self._postgres = PortForward(
            self.kubectl, f"service/{self.prefix}-postgres", port=5432, log_path=directory / "postgres-forward.log"
        )
        self.ledger = Ledger(self.database_url, interval_seconds=self.timings.interval)
        self.scrapes = Scrapes(prometheus.url, namespace=namespace, release=release, rules=shop_rules(namespace))

    def install(self, *, values: Mapping[str, object] | None = None) -> None:
        """Install the release, or bring it to other values, and wait until all of it is ready."""
        self.kubectl.ensure_namespace()
        self.kubectl.apply(*scrape_services(self.kubectl.namespace))
        self.helm(
            "upgrade", "--install", self.release, CHART, "--wait", "--timeout=5m", "--values=e2e/values.json", "--values=-",
            given=json.dumps({**self._values, **(values or {})}),
        )  # fmt: skip

    def helm(self, *arguments: str, given: str | None = None) -> str:
        """Return what `helm <arguments>` wrote, in the shop's namespace."""
        return run("helm", "--namespace", self.kubectl.namespace, *arguments, deadline_seconds=330, given=given)

    def roll_back(self) -> None:
        """Bring the release before the last change back, and wait until all of it is ready."""
        self.helm("rollback", self.release, "--wait", "--timeout=5m")

    def remove(self) -> None:
        """Uninstall the release."""
        self.close()
        self.helm("uninstall", self.release, "--wait", "--timeout=3m")

    def wait_until_up(self) -> None:
        """Wait until what was applied without helm is ready."""
        for component in ("api", "worker", "dispatcher"):
            self._rollout("status", component)

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
            return int(as_mapping(answer.json())["id"].__str__()) if answer.status_code == 201 else None

        made = until(try_to_create, deadline_seconds=60, every_seconds=0.5, message="POST /api/v1/products answers 201")
        assert made is not None
        return made

    @contextmanager
    def load(self, *, per_second: float) -> Iterator[Load]:
        load = Load()
        name = "load"
        script = (Path(__file__).parents[1] / "load.py").read_text(encoding="utf-8")
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"load.py": script}}
        arguments = ["/load/load.py", f"http://{self.prefix}-api", f"{per_second:g}"]
        self.kubectl.apply(config, _pod(name, ["python", *arguments], config_map=name))
        try:
            self._wait_for_log(name, "load begins")
            self.diary.note(f"{per_second:g} products a second are created")
            yield load
            self.kubectl.run("exec", name, "--", "sh", "-c", "kill -TERM 1")
            said = as_mapping(json.loads(self._wait_for_log(name, "created")))
        finally:
            self.kubectl.run("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found")
        load.created.extend(int(str(one)) for one in as_list(said["created"]))
        load.refused.extend(str(one) for one in as_list(said["refused"]))
        self.diary.note(f"{len(load.created)} products were created, {len(load.refused)} requests refused")

    def readiness(self, component: str) -> str:
        pod = name_of(self.pods(component)[0])
        way = PortForward(self.kubectl, f"pod/{pod}", port=9090, log_path=self._directory / "readiness-forward.log")
        try:
            return httpx.get(f"http://{way.address()}/readyz", timeout=20).text
        finally:
            way.close()

    def pods(self, component: str) -> list[dict[str, object]]:
        """Return the pods of a component, those included that end."""
        labels = f"app.kubernetes.io/instance={self.release},app.kubernetes.io/component={component}"
        return self.kubectl.items("pods", "--selector", labels)

    def lease_holder(self) -> str | None:
        found = self.kubectl.items("leases", "--field-selector", f"metadata.name={self.prefix}-dispatcher")
        holder = at(found[0], "spec", "holderIdentity") if found else None
        return str(holder) if holder else None

    def leader_pod(self) -> str:
        """Return the name of the pod that holds the Lease, waiting for one that is there."""

        def leading() -> str | None:
            # An identity is the pod's name and a random end.
            name = (self.lease_holder() or "").rpartition("_")[0]
            return name if name in {name_of(pod) for pod in self.pods("dispatcher") if _is_ready(pod)} else None

        found = until(leading, deadline_seconds=_PATIENCE_SECONDS, every_seconds=0.5, message="a dispatcher holds the Lease")
        assert found is not None
        return found

    def replace_pods(self, component: str, names: Sequence[str]) -> None:
        """Delete these pods of a component, and wait until others are there in their place."""
        if names:
            self.kubectl.run("delete", "pod", *names)
        self._wait_for(component)

    def node_of(self, pod: str) -> str:
        """Return the node that a pod runs on."""
        return str(at(self.kubectl.get("pod", pod), "spec", "nodeName"))

    def dispatchers(self) -> int:
        return sum(_is_ready(pod) for pod in self.pods("dispatcher"))

    def restarts(self) -> int:
        pods = [pod for component in ("api", "worker", "dispatcher") for pod in self.pods(component)]
        states = [state for pod in pods for state in as_list(at(pod, "status", "containerStatuses"))]
        return sum(int(str(at(state, "restartCount"))) for state in states)

    def logs(self, component: str) -> str:
        labels = f"app.kubernetes.io/instance={self.release},app.kubernetes.io/component={component}"
        return self.kubectl.run("logs", "--selector", labels, "--tail=-1", "--max-log-requests=20", "--prefix")

    def roll_dispatchers(self) -> None:
        self.diary.note("rolling update of the dispatchers")
        self._rollout("restart", "dispatcher")
        self._wait_for("dispatcher")
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
        self._rollout("restart", "worker")
        self._wait_for("worker")
        self.diary.note("the workers are new")

    @contextmanager
    def slow_warehouse(self) -> Iterator[None]:
        self._set_delay(f"{self.timings.long_job:g}")
        try:
            yield
        finally:
            self._set_delay("0")

    def _set_delay(self, seconds: str) -> None:
        delays = (f"WAREHOUSE_MAX_DELAY={seconds}", f"WAREHOUSE_MIN_DELAY={seconds}")
        self.kubectl.run("set", "env", self._deployment("worker"), *delays)
        self._rollout("status", "worker")
        self._wait_for("worker")

    @contextmanager
    def api_server_paused(self) -> Iterator[datetime]:
        with nodes.api_server_paused():
            yield self.diary.note("the API server is paused")
        self.diary.note("the API server answers again")
        # What is asked next must not find it still busy with what has piled up.
        until(self._answers, deadline_seconds=120, every_seconds=1, message="the API server answers kubectl")

    @contextmanager
    def lease_forbidden(self) -> Iterator[datetime]:
        name = f"{self.prefix}-dispatcher"
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
        nodes.signal_pod(self.kubectl, f"{self.prefix}-postgres-0", "KILL")
        return at_moment

    @contextmanager
    def postgres_stopped(self) -> Iterator[datetime]:
        at_moment = self.diary.note("PostgreSQL is stopped")
        self.kubectl.run("scale", f"statefulset/{self.prefix}-postgres", "--replicas=0")
        until(
            lambda: not self.pods("postgres"), deadline_seconds=_PATIENCE_SECONDS, every_seconds=1, message="PostgreSQL is gone"
        )
        self._postgres.close()
        try:
            yield at_moment
        finally:
            self.kubectl.run("scale", f"statefulset/{self.prefix}-postgres", "--replicas=1")
            until(
                lambda: all(_is_ready(pod) for pod in self.pods("postgres")) and self.pods("postgres"),
                deadline_seconds=_PATIENCE_SECONDS,
                every_seconds=1,
                message="PostgreSQL is back",
            )
            self.diary.note("PostgreSQL is back")

    def _answers(self) -> bool:
        return bool(self.kubectl.items("pods"))

    def _deployment(self, component: str) -> str:
        pool = "-default" if component == "worker" else ""
        return f"deployment/{self.prefix}-{component}{pool}"

    def _wait_for_log(self, pod: str, text: str) -> str:
        """Return the last line of a pod's log once it has a text in it."""

        def line() -> str | None:
            lines = self.kubectl.run("logs", pod, "--ignore-errors").splitlines()
            return lines[-1] if lines and text in lines[-1] else None

        found = until(line, deadline_seconds=60, every_seconds=0.5, message=f"{pod} logs {text!r}")
        assert found is not None
        return found

    def _rollout(self, verb: str, component: str) -> None:
        if verb != "status":
            self.kubectl.run("rollout", verb, self._deployment(component))
        self.kubectl.run("rollout", "status", self._deployment(component), "--timeout=240s", deadline_seconds=250)

    def _scale(self, component: str, count: int) -> None:
        self.diary.note(f"{component}s are scaled to {count}")
        self.kubectl.run("scale", self._deployment(component), f"--replicas={count}")
        self._wait_for(component)
        self.diary.note(f"{component}s are {count}")

    def _wait_for(self, component: str) -> None:
        """Wait until as many pods are ready as are wanted, and no others are there."""

        def is_there() -> bool:
            wanted = at(self.kubectl.get(self._deployment(component)), "spec", "replicas")
            pods = self.pods(component)
            return len(pods) == wanted and all(_is_ready(pod) for pod in pods)

        until(is_there, deadline_seconds=_PATIENCE_SECONDS, every_seconds=1, message=f"the {component}s are there")


def _pod(name: str, command: list[str], *, config_map: str) -> Manifest:
    """Return a pod that runs a program of a ConfigMap in the image under test, once."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": name,
                    "image": f"sweephand:{IMAGE_TAG}",
                    "command": command,
                    "volumeMounts": [{"name": "program", "mountPath": "/load"}],
                }
            ],
            "volumes": [{"name": "program", "configMap": {"name": config_map}}],
        },
    }


def _is_ready(pod: Mapping[str, object]) -> bool:
    conditions = as_list(at(pod, "status", "conditions"))
    is_ending = at(pod, "metadata", "deletionTimestamp") is not None
    return not is_ending and any(at(one, "type") == "Ready" and at(one, "status") == "True" for one in conditions)

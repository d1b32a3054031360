"""Install a release of the chart, find its pods, and change how many there are of them."""

import json
from collections.abc import Mapping, Sequence

from e2e.system.commands import run
from e2e.system.kubernetes import Kubectl, Manifest, as_list, at, name_of
from tests.support.waiting import until

CHART = "charts/sweephand"
IMAGE = "sweephand:e2e"
COMPONENTS = ("api", "worker", "dispatcher")
PATIENCE_SECONDS = 240


class Release:
    """Be a release in one namespace, whether helm or `kubectl apply` made it."""

    def __init__(self, name: str, *, namespace: str, values: Mapping[str, object]) -> None:
        """Describe the release; `install` makes it. `values` are the chart's that differ from e2e/values.json."""
        self.kubectl = Kubectl(namespace)
        self.name = name
        self.prefix = name if "sweephand" in name else f"{name}-sweephand"  # as the chart names things
        self._values = dict(values)

    def install(self, *, values: Mapping[str, object] | None = None) -> None:
        """Install the release, or bring it to other values, and wait until all of it is ready."""
        self.helm(
            "upgrade", "--install", self.name, CHART, "--wait", "--timeout=5m", "--values=e2e/values.json", "--values=-",
            given=json.dumps({**self._values, **(values or {})}),
        )  # fmt: skip

    def roll_back(self) -> None:
        """Bring the release before the last change back, and wait until all of it is ready."""
        self.helm("rollback", self.name, "--wait", "--timeout=5m")

    def uninstall(self) -> None:
        """Remove the release, and wait until all of it is gone."""
        self.helm("uninstall", self.name, "--wait", "--timeout=3m")

    def helm(self, *arguments: str, given: str | None = None) -> str:
        """Return what `helm <arguments>` wrote, in the release's namespace."""
        return run("helm", "--namespace", self.kubectl.namespace, *arguments, deadline_seconds=330, given=given)

    def deployment(self, component: str) -> str:
        """Return a component's Deployment, as kubectl takes it."""
        pool = "-default" if component == "worker" else ""
        return f"deployment/{self.prefix}-{component}{pool}"

    def pods(self, component: str) -> list[dict[str, object]]:
        """Return the pods of a component, those included that end."""
        return self.kubectl.items("pods", "--selector", self._selector(component))

    def ready_pods(self, component: str) -> list[str]:
        """Return the names of a component's pods that are ready, and not about to end."""
        return [name_of(pod) for pod in self.pods(component) if is_ready(pod)]

    def node_of(self, pod: str) -> str:
        """Return the node that a pod runs on."""
        return str(at(self.kubectl.get("pod", pod), "spec", "nodeName"))

    def restarts(self) -> int:
        """Return how often the containers of the processes were started again."""
        pods = [pod for component in COMPONENTS for pod in self.pods(component)]
        states = [state for pod in pods for state in as_list(at(pod, "status", "containerStatuses"))]
        return sum(int(str(at(state, "restartCount"))) for state in states)

    def logs(self, component: str) -> str:
        """Return what the pods of a component logged, since their containers last started."""
        selector = self._selector(component)
        return self.kubectl.run("logs", "--selector", selector, "--tail=-1", "--max-log-requests=20", "--prefix")

    def scale(self, component: str, count: int) -> None:
        """Run this many pods of a component, and wait until they are there, or gone."""
        self.kubectl.run("scale", self.deployment(component), f"--replicas={count}")
        self.wait_for(component)

    def roll(self, component: str) -> None:
        """Replace the pods of a component as a rolling update does, and wait until it is through."""
        self.kubectl.run("rollout", "restart", self.deployment(component))
        self.wait_for(component)

    def set_env(self, component: str, **variables: str) -> None:
        """Change the environment of a component's pods, and wait until they are replaced."""
        settings = [f"{name}={value}" for name, value in variables.items()]
        self.kubectl.run("set", "env", self.deployment(component), *settings)
        self.wait_for(component)

    def replace_pods(self, component: str, names: Sequence[str]) -> None:
        """Delete these pods of a component, and wait until others are there in their place."""
        if names:
            self.kubectl.run("delete", "pod", *names)
        self.wait_for(component)

    def wait_for(self, component: str) -> None:
        """Wait until a rollout is through, as many pods are ready as are wanted, and no others are there."""
        deployment = self.deployment(component)
        self.kubectl.run(
            "rollout", "status", deployment, f"--timeout={PATIENCE_SECONDS}s", deadline_seconds=PATIENCE_SECONDS + 10
        )

        def is_there() -> bool:
            wanted = at(self.kubectl.get(deployment), "spec", "replicas")
            return len(self.pods(component)) == wanted == len(self.ready_pods(component))

        until(is_there, deadline_seconds=PATIENCE_SECONDS, every_seconds=1, message=f"the {component}s are there")

    def scale_postgres(self, count: int) -> None:
        """Run one PostgreSQL or none, and wait until it is ready, or gone."""
        self.kubectl.run("scale", f"statefulset/{self.prefix}-postgres", f"--replicas={count}")
        until(
            lambda: len(self.pods("postgres")) == count == len(self.ready_pods("postgres")),
            deadline_seconds=PATIENCE_SECONDS,
            every_seconds=1,
            message=f"there is {count or 'no'} PostgreSQL",
        )

    def _selector(self, component: str) -> str:
        return f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"


def one_pod(name: str, command: Sequence[str], *, labels: Mapping[str, str] | None = None) -> Manifest:
    """Return a pod that runs a command in the image under test, once."""
    container = {"name": name, "image": IMAGE, "command": list(command)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }


def is_ready(pod: Mapping[str, object]) -> bool:
    """Tell whether a pod is ready, and not about to end."""
    conditions = as_list(at(pod, "status", "conditions"))
    is_ending = at(pod, "metadata", "deletionTimestamp") is not None
    return not is_ending and any(at(one, "type") == "Ready" and at(one, "status") == "True" for one in conditions)

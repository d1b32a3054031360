"""Do to kind's nodes, which are containers of this machine's Docker, what happens to machines and their processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.system.commands import run
from e2e.system.kubernetes import Kubectl, at
from tests.support.waiting import until

CLUSTER = os.environ.get("E2E_CLUSTER", "sweephand-e2e")
CONTROL_PLANE = f"{CLUSTER}-control-plane"


def signal_pod(kubectl: Kubectl, pod: str, name: str) -> None:
    """Send a signal to every process of a pod's first container, from outside, where SIGKILL reaches its first one too."""
    found = kubectl.get("pod", pod)
    node = str(at(found, "spec", "nodeName"))
    container = str(at(found, "status", "containerStatuses", 0, "containerID")).partition("://")[2]
    # A process's cgroup names its container, whatever runs the containers. One that is gone was ended by the signal to
    # another: a container's first process takes all others with it.
    processes = f"$(grep -l {container} /proc/[0-9]*/cgroup | cut -d/ -f3)"
    script = f"reached=1; for process in {processes}; do kill -{name} $process && reached=0; done; exit $reached"
    run("docker", "exec", node, "sh", "-c", script)


@contextmanager
def api_server_paused() -> Iterator[None]:
    """Stop the API server's process for the block: it takes connections and answers none."""
    run("docker", "exec", CONTROL_PLANE, "pkill", "-STOP", "-x", "kube-apiserver")
    try:
        yield
    finally:
        run("docker", "exec", CONTROL_PLANE, "pkill", "-CONT", "-x", "kube-apiserver")


@contextmanager
def node_stopped(node: str) -> Iterator[None]:
    """Cut a node's power for the block; after it the node is there again and ready."""
    run("docker", "kill", node)
    try:
        yield
    finally:
        run("docker", "start", node)
        kubectl = Kubectl("default")
        until(lambda: is_ready(kubectl, node), deadline_seconds=240, every_seconds=2, message=f"node {node} is ready")


@contextmanager
def cordoned(node: str) -> Iterator[None]:
    """Let the scheduler put no pods on a node for the block."""
    run("kubectl", "cordon", node)
    try:
        yield
    finally:
        run("kubectl", "uncordon", node)


def is_ready(kubectl: Kubectl, node: str) -> bool:
    """Tell whether a node has the condition Ready."""
    conditions = at(kubectl.get("node", node), "status", "conditions")
    assert isinstance(conditions, list)
    return any(at(one, "type") == "Ready" and at(one, "status") == "True" for one in conditions)

"""Ask the cluster, and change it, by kubectl."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.system.commands import run
from tests.support.processes import RunningCommand
from tests.support.waiting import until

Manifest = Mapping[str, object]


class Kubectl:
    """Be kubectl in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def run(self, *arguments: str, deadline_seconds: float = 120, given: str | None = None) -> str:
        """Return what `kubectl <arguments>` wrote."""
        return run("kubectl", "--namespace", self.namespace, *arguments, deadline_seconds=deadline_seconds, given=given)

    def get(self, *arguments: str) -> dict[str, object]:
        """Return the object, or the list of objects, that `kubectl get` finds."""
        found: object = json.loads(self.run("get", *arguments, "--output", "json"))
        return as_mapping(found)

    def items(self, kind: str, *arguments: str) -> list[dict[str, object]]:
        """Return the objects of a kind."""
        return [as_mapping(item) for item in as_list(self.get(kind, *arguments)["items"])]

    def apply(self, *objects: Manifest) -> None:
        """Make or change these objects."""
        self.run("apply", "--filename", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def ensure_namespace(self) -> None:
        """Make the namespace if it is not there."""
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})


class PortForward:
    """Be a way from this machine to a port in the cluster. It is opened when first used, and again after it broke."""

    def __init__(self, kubectl: Kubectl, target: str, *, port: int, log_path: Path) -> None:
        """Describe a way to, for example, `service/shop-api`."""
        self._kubectl = kubectl
        self._target = target
        self._port = port
        self._log_path = log_path
        self._running: RunningCommand | None = None
        self._address = ""

    def address(self) -> str:
        """Return `127.0.0.1:<port>`, where the target answers now."""
        if self._running is None or not self._running.is_running():
            self.close()
            until(self._try_to_open, deadline_seconds=120, every_seconds=0.5, message=f"a way to {self._target}")
        return self._address

    def close(self) -> None:
        """Close the way; the next `address` opens another, perhaps to another pod."""
        if self._running is not None:
            self._running.destroy()
            self._running = None

    def _try_to_open(self) -> bool:
        command = ["kubectl", "--namespace", self._kubectl.namespace, "port-forward", self._target, f":{self._port}"]
        running = RunningCommand.start(command, env=kubeconfig(), log_path=self._log_path)
        try:
            line = running.wait_for_log("Forwarding from 127.0.0.1:", deadline_seconds=15)
        except AssertionError:
            running.destroy()
            return False
        self._running = running
        self._address = line.split()[2]
        return True


def kubeconfig() -> dict[str, str]:
    """Return the part of the environment that leads kubectl to the cluster."""
    return {"KUBECONFIG": os.environ["KUBECONFIG"]}


def as_mapping(value: object) -> dict[str, object]:
    """Return a JSON object as one, empty for None."""
    assert isinstance(value, dict | None), value
    return {str(key): child for key, child in (value or {}).items()}


def as_list(value: object) -> list[object]:
    """Return a JSON array as one, empty for None."""
    assert isinstance(value, list | None), value
    return list(value or [])


def at(value: object, *path: str | int) -> object:
    """Return what lies at a path in a JSON document, None where it ends early."""
    for step in path:
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            return None
    return value


def name_of(found: Mapping[str, object]) -> str:
    """Return an object's name."""
    return str(at(found, "metadata", "name"))

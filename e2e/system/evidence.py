"""Keep what tells why a case failed, as files: the ledger, the Lease, and on a cluster its events, pods and logs."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from e2e.system.cluster_shop import ClusterShop
from e2e.system.commands import CommandError
from e2e.system.shop import Shop

_COMPONENTS = ("api", "worker", "dispatcher", "postgres", "migration")


def collect(shop: Shop, directory: Path, *, since: datetime) -> None:
    """Write the evidence into a directory. What cannot be had is said in its file."""
    directory.mkdir(parents=True, exist_ok=True)

    def keep(name: str, ask: Callable[[], str]) -> None:
        try:
            text = ask()
        except (CommandError, AssertionError) as error:
            text = f"not to be had: {error}\n"
        (directory / name).write_text(text, encoding="utf-8")

    keep("diary.txt", lambda: "\n".join(f"{event.at.isoformat()} {event.text}" for event in shop.diary.events))
    keep("ledger.txt", lambda: "\n".join(str(tick) for tick in shop.ledger.ticks(since=since)))
    keep("lease.txt", lambda: str(shop.lease_holder()))
    for component in _COMPONENTS[:3]:
        keep(f"{component}.log", lambda component=component: shop.logs(component))  # type: ignore[misc]
    if isinstance(shop, ClusterShop):
        kubectl = shop.kubectl
        keep("events.txt", lambda: kubectl.run("get", "events", "--sort-by=.lastTimestamp"))
        keep("pods.txt", lambda: kubectl.run("get", "pods", "--output=wide"))
        keep("pods.yaml", lambda: kubectl.run("get", "pods,leases", "--output=yaml"))
        for pod in [pod for component in _COMPONENTS for pod in shop.release.pods(component)]:
            name = str(pod["metadata"]["name"])  # type: ignore[index]
            keep(f"{name}.previous.log", lambda name=name: kubectl.run("logs", name, "--previous"))  # type: ignore[misc]

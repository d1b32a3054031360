"""NetworkPolicies are on: all works, and a pod without business there reaches neither PostgreSQL nor API nor metrics."""

import json

import pytest

from e2e.system.case import Case
from e2e.system.cluster_shop import ClusterShop
from e2e.system.kubernetes import Kubectl, at
from e2e.system.release import COMPONENTS, one_pod
from tests.support.waiting import until

pytestmark = pytest.mark.shop("closed")

# Tries for a while: nodes learn of a new pod's labels a moment after it runs.
PROBE = """
import json, socket, sys, time
from concurrent.futures import ThreadPoolExecutor

def is_reached(address):
    host, _, port = address.rpartition(":")
    ends_at = time.monotonic() + 20
    while time.monotonic() < ends_at:
        try:
            socket.create_connection((host, int(port)), timeout=3).close()
            return True
        except OSError:
            time.sleep(0.5)
    return False

addresses = sys.argv[1:]
with ThreadPoolExecutor(len(addresses)) as pool:
    answers = list(pool.map(is_reached, addresses))
print(json.dumps([address for address, answer in zip(addresses, answers) if answer]))
"""


def test_network_policies(case: Case, cluster_shop: ClusterShop) -> None:
    said = cluster_shop.release.helm("test", cluster_shop.release.name, "--logs")
    stuck = cluster_shop.ledger.insert_stuck(3)
    cluster_shop.ledger.wait_until_published(stuck)

    namespace = cluster_shop.kubectl.namespace
    postgres = f"{cluster_shop.release.prefix}-postgres.{namespace}.svc:5432"
    api = f"{cluster_shop.release.prefix}-api.{namespace}.svc:80"
    metrics = [f"{at(pod, 'status', 'podIP')}:9090" for name in COMPONENTS for pod in cluster_shop.release.pods(name)]
    everything = [postgres, api, *metrics]
    assert reached(Kubectl(namespace), everything, labels={}) == []
    assert reached(Kubectl("default"), everything, labels={}) == []
    assert reached(Kubectl(namespace), everything, labels={"may-call": "the-api"}) == [api]
    # The same probe does reach what it may, so silence above is the policies' doing.
    assert reached(Kubectl("monitoring"), everything, labels={}) == metrics

    assert "a worker did the job" in said
    case.check_done_once(stuck)
    assert case.missed() == 0
    case.check_counters()
    case.check_alerts()


def reached(kubectl: Kubectl, addresses: list[str], *, labels: dict[str, str]) -> list[str]:
    """Return those of the addresses that a pod with these labels can connect to."""
    name = "probe"
    kubectl.apply(one_pod(name, ["python", "-c", PROBE, *addresses], labels=labels))
    try:
        phase = until(
            lambda: {"Succeeded", "Failed"} & {str(at(kubectl.get("pod", name), "status", "phase"))},
            deadline_seconds=180,
            every_seconds=1,
            message="the probe has tried everything",
        )
        assert phase == {"Succeeded"}, kubectl.run("logs", name)
        found: list[str] = json.loads(kubectl.run("logs", name))
    finally:
        kubectl.run("delete", "pod", name, "--grace-period=0", "--force")
    return found

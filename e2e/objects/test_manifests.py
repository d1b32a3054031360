"""The manifests that skaffold applies make a shop that works, and its namespace is gone within a minute when it is deleted."""

import os
import time
from pathlib import Path

from e2e.system.cluster_prometheus import ClusterPrometheus
from e2e.system.cluster_shop import ClusterShop
from e2e.system.commands import REPOSITORY, run
from e2e.system.release import COMPONENTS

NAMESPACE = "sweephand"
GONE_WITHIN_SECONDS = 60


def test_manifests(tmp_path: Path, prometheus: ClusterPrometheus) -> None:
    # skaffold puts the tag of what it has just built into the overlay; kustomize takes relative paths only.
    overlay = os.path.relpath(REPOSITORY / "k8s" / "overlays" / "dev", tmp_path)
    images = "images: [{name: sweephand, newTag: e2e}]"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{overlay}]\n{images}\n", encoding="utf-8")
    shop = ClusterShop(NAMESPACE, directory=tmp_path, prometheus=prometheus, values={}, release="sweephand")
    run("kubectl", "apply", "--kustomize", str(tmp_path))
    try:
        for component in COMPONENTS:
            shop.release.wait_for(component)
        created = shop.create_product()
        shop.ledger.wait_until_published([created])
        assert shop.ledger.executions([created]) == {created: 1}
        assert shop.lease_holder() == shop.ledger.term().holder
        assert [tick.reason for tick in shop.ledger.ticks(since=shop.ledger.term().since)] in (["run_on_start"], [])
    finally:
        shop.close()
        began = time.monotonic()
        run("kubectl", "delete", "namespace", NAMESPACE, "--timeout=180s", deadline_seconds=190)
    assert time.monotonic() - began < GONE_WITHIN_SECONDS

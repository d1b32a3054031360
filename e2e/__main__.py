"""Make a cluster, put the images into it, run the cases, draw the page, and leave nothing behind.

    python -m e2e [--on cluster|processes] [--keep] [arguments for pytest]

Needs docker, kind, kubectl and helm on PATH. KIND_NODE_IMAGE names another image for the nodes than kind's own.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from e2e.conftest import BUILD, SHOPS
from e2e.report.page import write_page
from e2e.report.run import Run
from e2e.system import nodes
from e2e.system.cluster_prometheus import IMAGE as PROMETHEUS_IMAGE
from e2e.system.cluster_prometheus import ClusterPrometheus
from e2e.system.commands import REPOSITORY, CommandError, run

IMAGES = ("sweephand:e2e", "sweephand:e2e-next")
PUBLIC_IMAGES = ("postgres:17", PROMETHEUS_IMAGE)
PROGRAMS = ("docker", "kind", "kubectl", "helm")
GROUPS = ("ticks", "jobs", "objects")
_REPORT = REPOSITORY / "docs" / "e2e-report"


def main() -> int:
    """Run what the command line asks for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e", description="End-to-end cases of sweephand, under faults.")
    parser.add_argument("--on", choices=("cluster", "processes"), default="cluster", help="where the shop runs")
    parser.add_argument("--keep", action="store_true", help="leave the cluster, for a look or the next run")
    options, pytest_arguments = parser.parse_known_args()
    began = time.monotonic()
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    if options.on == "processes":
        Run.beginning_now(place="processes").write(BUILD)
        status = _run_groups("processes", pytest_arguments)
    else:
        status = _run_on_cluster(is_kept=options.keep, arguments=pytest_arguments)
    is_whole = options.on == "cluster" and not pytest_arguments and not status
    page = write_page(BUILD / "cases", _REPORT if is_whole else BUILD / "report")
    _say(f"{'passed' if not status else 'FAILED'} in {(time.monotonic() - began) / 60:.1f} min; the page of the run: {page}")
    if status:
        _say(f"what tells why: {BUILD / 'evidence'}")
    return status


def _run_on_cluster(*, is_kept: bool, arguments: list[str]) -> int:
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking:
        _say(f"error: not installed: {' '.join(lacking)}; docs/deploy/development.md says where to get them")
        return 2
    os.environ["KUBECONFIG"] = str(BUILD.parent / "kubeconfig")
    try:
        _prepare()
        Run.beginning_now(place="cluster").write(BUILD)
        return _run_groups("cluster", arguments)
    except CommandError as error:
        _say(f"error: {error}")
        return 1
    finally:
        if not is_kept:
            run("kind", "delete", "cluster", "--name", nodes.CLUSTER)


def _prepare() -> None:
    """Make the cluster, unless it was kept, and bring the images and Prometheus into it."""
    with ThreadPoolExecutor() as pool:
        building = pool.submit(_build_images)
        if nodes.CLUSTER not in run("kind", "get", "clusters").split():
            _say("making a cluster of three nodes")
            node_image = os.environ.get("KIND_NODE_IMAGE")
            run(
                "kind", "create", "cluster", "--name", nodes.CLUSTER, "--config", "k8s/kind.yaml", "--wait", "240s",
                *(("--image", node_image) if node_image else ()), deadline_seconds=600,
            )  # fmt: skip
        building.result()
    _say("loading the images")
    workers = ",".join(f"{nodes.CLUSTER}-{name}" for name in ("worker", "worker2"))
    _load(workers, *IMAGES, "postgres:17")
    _load(nodes.CONTROL_PLANE, PROMETHEUS_IMAGE)
    _say("starting Prometheus")
    prometheus = ClusterPrometheus(BUILD)
    prometheus.install(SHOPS)


def _load(nodes_of_kind: str, *images: str) -> None:
    run(
        "kind", "load", "docker-image", "--name", nodes.CLUSTER, "--nodes", nodes_of_kind, *images, deadline_seconds=600
    )  # fmt: skip


def _build_images() -> None:
    _say("building the images")
    run("docker", "build", "--quiet", "--tag", IMAGES[0], ".", deadline_seconds=900)
    run("docker", "build", "--quiet", "--tag", IMAGES[1], "--file", "e2e/apps/Dockerfile", "e2e/apps", deadline_seconds=300)
    for image in PUBLIC_IMAGES:
        if not run("docker", "images", "--quiet", image).strip():
            run("docker", "pull", "--quiet", image, deadline_seconds=900)


def _run_groups(place: str, arguments: list[str]) -> int:
    """Run the groups of cases beside each other, each with a shop of its own; then, alone, what befalls a whole cluster."""
    with ThreadPoolExecutor() as pool:
        statuses = list(pool.map(lambda group: _run_group(group, place, arguments), GROUPS))
    statuses.append(_run_group("whole_cluster", place, arguments))
    return max(statuses)


def _run_group(group: str, place: str, arguments: list[str]) -> int:
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"e2e/{group}",
        f"--on={place}",
        "-p",
        "no:randomly",
        "-v",
        "--no-header",
        "--timeout=900",
        *arguments,
    ]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=unbuffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout or ():
            if line.strip():
                _say(f"{group:13} {line.rstrip()}")
    # 5: it has no case of those that were asked for.
    return 0 if running.returncode == 5 else running.returncode


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Run a Prometheus in the cluster that scrapes every shop and has the rules that the chart makes for each."""

import json
from collections.abc import Mapping
from pathlib import Path

from e2e.system.kubernetes import Kubectl, Manifest, PortForward
from e2e.system.release import COMPONENTS
from e2e.system.scrapes import SCRAPE_SECONDS
from tests.chart.test_alerts import rules

NAMESPACE = "monitoring"
RELEASE = "shop"
IMAGE = "prom/prometheus:v2.53.3"
_NAME = "prometheus"


class ClusterPrometheus:
    """Be that Prometheus. It finds pods by DNS, which needs no rights and every build of it has."""

    def __init__(self, directory: Path) -> None:
        """Keep the port-forward's log in the directory."""
        self._kubectl = Kubectl(NAMESPACE)
        self._forward = PortForward(
            self._kubectl, f"deployment/{_NAME}", port=9090, log_path=directory / "prometheus-forward.log"
        )

    def install(self, shops: tuple[str, ...]) -> None:
        """Start it for the shops in these namespaces, which need not be there yet."""
        self._kubectl.ensure_namespace()
        self._kubectl.apply(_files(shops), _deployment())
        self._kubectl.run("rollout", "status", f"deployment/{_NAME}", "--timeout=240s", deadline_seconds=250)

    def url(self) -> str:
        """Return where it answers now."""
        return f"http://{self._forward.address()}"

    def close(self) -> None:
        """Close the way to it."""
        self._forward.close()


def scrape_services(namespace: str) -> list[Manifest]:
    """Return the Services by which Prometheus finds the pods of each component."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"scrape-{component}", "namespace": namespace},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {"app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/component": component},
                "ports": [{"name": "metrics", "port": 9090}],
            },
        }
        for component in COMPONENTS
    ]


def shop_rules(namespace: str) -> list[Mapping[str, object]]:
    """Return the groups of the chart's rules for the shop in a namespace, evaluated as often as is scraped here."""
    groups = rules(namespace=namespace, release=RELEASE)["groups"]
    return [{**{key: child.value for key, child in group.entries()}, "interval": f"{SCRAPE_SECONDS}s"} for group in groups]


def _files(shops: tuple[str, ...]) -> Manifest:
    config = {
        "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"},
        "rule_files": ["/etc/prometheus/rules.json"],
        "scrape_configs": [_scrape(namespace, component) for namespace in shops for component in COMPONENTS],
    }
    groups = [group for namespace in shops for group in shop_rules(namespace)]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _NAME, "namespace": NAMESPACE},
        "data": {"prometheus.yml": json.dumps(config), "rules.json": json.dumps({"groups": groups})},
    }


def _scrape(namespace: str, component: str) -> Mapping[str, object]:
    labels = {"namespace": namespace, "release": RELEASE, "component": component}
    return {
        "job_name": f"{namespace}-{component}",
        "dns_sd_configs": [
            {
                "names": [f"scrape-{component}.{namespace}.svc.cluster.local"],
                "type": "A",
                "port": 9090,
                "refresh_interval": f"{SCRAPE_SECONDS}s",
            }
        ],
        "relabel_configs": [
            *({"target_label": label, "replacement": value} for label, value in labels.items()),
            {"source_labels": ["__address__"], "target_label": "pod"},
        ],
    }


def _deployment() -> Manifest:
    labels = {"app": _NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    # Where no case stops a node: what was recorded must outlive the faults.
                    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {
                            "name": _NAME,
                            "image": IMAGE,
                            "imagePullPolicy": "IfNotPresent",
                            "args": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"],
                            "ports": [{"containerPort": 9090}],
                            "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 2},
                            "volumeMounts": [
                                {"name": "config", "mountPath": "/etc/prometheus"},
                                {"name": "data", "mountPath": "/prometheus"},
                            ],
                        }
                    ],
                    "volumes": [
                        {"name": "config", "configMap": {"name": _NAME}},
                        {"name": "data", "emptyDir": {}},
                    ],
                    "securityContext": {"fsGroup": 65534, "runAsUser": 65534, "runAsNonRoot": True},
                },
            },
        },
    }

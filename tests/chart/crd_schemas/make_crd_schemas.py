"""Write the JSON schemas of the custom resources that the chart makes, for kubeconform, beside this file.

    go mod download sigs.k8s.io/gateway-api@v1.4.1      (and the others of SOURCES)
    python tests/chart/crd_schemas/make_crd_schemas.py ~/go/pkg/mod

The definitions are Apache-2.0, of the projects named in SOURCES.
"""

import json
import sys
from pathlib import Path

import yaml

SOURCES = {
    "sigs.k8s.io/gateway-api@v1.4.1/config/crd/standard": ["gateway.networking.k8s.io_httproutes.yaml"],
    "github.com/prometheus-operator/prometheus-operator@v0.92.1/example/prometheus-operator-crd": [
        "monitoring.coreos.com_podmonitors.yaml",
        "monitoring.coreos.com_prometheusrules.yaml",
        "monitoring.coreos.com_servicemonitors.yaml",
    ],
    "github.com/kedacore/keda/v2@v2.17.2/config/crd/bases": ["keda.sh_scaledobjects.yaml"],
}
# What kubeconform's JSON Schema library does not read, or what only takes room.
DROPPED = {"description", "default", "format", "x-kubernetes-validations"}


def strict(node: object) -> object:
    """Return a structural schema as JSON Schema that refuses unknown fields, as the API server's strict mode does."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    found = {
        key: {name: strict(value) for name, value in child.items()} if key == "properties" else strict(child)
        for key, child in node.items()
        if key not in DROPPED and not (key.startswith("x-kubernetes-") and key != "x-kubernetes-preserve-unknown-fields")
    }
    is_open = found.pop("x-kubernetes-preserve-unknown-fields", False)
    if "properties" in found and "additionalProperties" not in found and not is_open:
        found["additionalProperties"] = False
    return found


def main(modules: Path) -> None:
    """Read the definitions below Go's module directory."""
    for directory, names in SOURCES.items():
        for name in names:
            definition = yaml.safe_load((modules / directory / name).read_text())
            group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
            for version in definition["spec"]["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                assert isinstance(schema, dict)
                # The outermost fields, which the definition leaves to the API server.
                schema["properties"]["metadata"] = {"type": "object"}
                schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
                target = Path(__file__).parent / group / f"{kind.lower()}_{version['name']}.json"
                target.parent.mkdir(exist_ok=True)
                target.write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

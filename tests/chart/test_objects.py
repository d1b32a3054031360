"""What the chart makes, for every file of ci/: valid for all promised versions of Kubernetes, restricted, and its own."""

import re
from pathlib import Path

import pytest

from tests.chart.kubernetes_schemas import write_schemas
from tests.chart.programs import CHART, KUBERNETES_VERSION, KUBERNETES_VERSIONS, run, run_anyway
from tests.chart.rendering import CI_FILES, OPERATORS, Object, containers_of, render, render_text

ci_files = pytest.mark.parametrize("values", CI_FILES, ids=lambda path: path.stem)
_CRD_SCHEMAS = Path(__file__).parent / "crd_schemas"
_TEMPLATES = sorted([*CHART.glob("templates/**/*.yaml"), *CHART.glob("templates/**/*.tpl")])


def test_there_is_a_file_for_each_way_to_install() -> None:
    named = {path.stem for path in CI_FILES}

    assert named == {"default", "minimal", "ha", "restricted", "monitoring", "keda", "external-db", "argocd"}


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_object_is_valid(version: str, tmp_path: Path) -> None:
    schemas, manifests = tmp_path / "schemas", tmp_path / "manifests"
    schemas.mkdir()
    manifests.mkdir()
    kinds = {one.kind.lower() for values in CI_FILES for one in render(values)}
    write_schemas(version, kinds, target=schemas)
    for values in CI_FILES:
        (manifests / values.name).write_text(render_text(values, kubernetes_version=version))

    run([
        "kubeconform", "-strict", "-summary",
        "-schema-location", f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
        "-schema-location", f"{_CRD_SCHEMAS}/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json",
        manifests,
    ])  # fmt: skip


def test_a_field_that_kubernetes_does_not_know_would_be_found(tmp_path: Path) -> None:
    write_schemas("1.34.0", {"deployment"}, target=tmp_path)
    settings = ["pod.extraVolumes[0].name=x", "pod.extraVolumes[0].emptyDirr.medium=Memory"]
    text = render_text(CHART / "ci" / "default.yaml", settings=settings, api_versions=())
    command = [
        "kubeconform",
        "-strict",
        "-ignore-missing-schemas",
        "-schema-location",
        f"{tmp_path}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
    ]

    ended = run_anyway(command, text=text)

    assert ended.returncode != 0
    assert "additional properties 'emptyDirr' not allowed" in ended.stdout


@ci_files
def test_every_pod_passes_pod_security_restricted(values: Path) -> None:
    for made in render(values):
        pod = made.pod
        if pod is None:
            continue
        spec = pod["spec"]
        assert spec.at("securityContext.runAsNonRoot").value is True, made.key
        assert spec.at("securityContext.seccompProfile.type").value == "RuntimeDefault", made.key
        assert not spec.get("hostNetwork").value, made.key
        assert not spec.get("hostPID").value, made.key
        assert not spec.get("hostIPC").value, made.key
        for volume in spec.get("volumes"):
            assert set(dict(volume.entries())) - {"name"} <= {"configMap", "secret", "emptyDir", "projected"}, made.key
        for container in containers_of(pod):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"].value is False, made.key
            assert context["readOnlyRootFilesystem"].value is True, made.key
            assert context["capabilities"]["drop"].value == ["ALL"], made.key
            assert context.at("capabilities.add").value is None, made.key
            assert context.get("privileged").value is None, made.key
            assert all(port.get("hostPort").value is None for port in container.get("ports")), made.key


@ci_files
def test_every_container_asks_for_what_it_needs_and_is_limited_in_memory(values: Path) -> None:
    for made in render(values):
        for container in containers_of(made.pod) if made.pod else []:
            assert container["resources"]["requests"]["cpu"].value, made.key
            assert container["resources"]["requests"]["memory"].value, made.key
            assert container["resources"]["limits"]["memory"].value, made.key


@ci_files
def test_only_the_dispatcher_has_a_token_and_only_for_a_lease(values: Path) -> None:
    made = render(values)
    pods = {(one.component, one.pod["spec"]["automountServiceAccountToken"].value) for one in made if one.pod}
    roles = [one for one in made if one.kind == "Role"]
    elects_in_kubernetes = values.stem != "external-db"

    assert {component for component, has_token in pods if has_token} == ({"dispatcher"} if elects_in_kubernetes else set())
    assert not [one for one in made if one.kind.startswith("ClusterRole")]
    for role in roles:
        assert {resource.text for rule in role.node["rules"] for resource in rule["resources"]} == {"leases"}
        assert [rule["verbs"].value for rule in role.node["rules"] if not rule.get("resourceNames").value] == [["create"]]


@ci_files
def test_names_and_selectors_are_the_release_s_own(values: Path) -> None:
    shop = render(values, release="shop")
    bakery = render(values, release="bakery")

    assert not {one.key for one in shop} & {one.key for one in bakery}
    assert all(one.name.startswith("shop") for one in shop)
    for one in shop:
        assert one.node.at("metadata.namespace").value == "orders" or one.name.endswith("-extra"), one.key


@ci_files
def test_no_label_of_the_user_is_part_of_a_selector(values: Path) -> None:
    def selectors(settings: list[str]) -> dict[str, object]:
        made = render(values, settings=settings)
        return {re.sub(r"-migrate-\w+", "", one.key): one.node.at("spec.selector").value for one in made}

    labelled = ["commonLabels.colour=red", "pod.labels.taste=sweet", "api.pod.labels.size=big"]

    assert selectors([]) == selectors(labelled)


@ci_files
def test_rendering_twice_gives_the_same(values: Path) -> None:
    command: list[str | Path] = ["helm", "template", "shop", CHART, "--kube-version", KUBERNETES_VERSION, "--values", values]

    assert run(command) == run(command)


def test_no_template_has_a_random_part_or_asks_the_cluster() -> None:
    banned = re.compile(r"\b(rand\w+|uuidv4|gen(CA|PrivateKey|SelfSigned|Signed)\w*|derivePassword|htpasswd|now|lookup)\b")

    for path in _TEMPLATES:
        code = re.sub(r"{{-? ?/\*.*?\*/ ?-?}}", "", path.read_text(), flags=re.DOTALL)
        parts = [part for part in re.findall(r"{{(.*?)}}", code) if banned.search(part)]
        assert parts == [], path.name


@ci_files
def test_rendered_yaml_reads_well(values: Path) -> None:
    text = render_text(values)

    assert "\n\n\n" not in text
    assert "<no value>" not in text
    # Dashboards are JSON, whose keys are quoted.
    assert re.findall(r"^ *[\w.-]+: null$", text, flags=re.MULTILINE) == []
    assert re.findall(r"^ *[\w.-]+:.* +$", text, flags=re.MULTILINE) == []


def test_a_bare_cluster_gets_no_object_of_an_operator() -> None:
    made = render(CHART / "ci" / "default.yaml", api_versions=())

    assert {one.node["apiVersion"].text for one in made} <= {
        "v1", "apps/v1", "batch/v1", "policy/v1", "rbac.authorization.k8s.io/v1",
    }  # fmt: skip


def test_the_operator_s_objects_are_made_where_its_crds_are() -> None:
    made = render(CHART / "ci" / "default.yaml", api_versions=OPERATORS)
    dashboards = [one for one in made if one.node.at("metadata.labels.grafana_dashboard").value == "1"]

    assert {one.kind for one in made} >= {"PodMonitor", "PrometheusRule"}
    assert len(dashboards) == 3


def migration_of(made: list[Object]) -> str:
    return next(one.name for one in made if one.kind == "Job")


def test_the_migration_is_a_new_job_for_a_new_image_and_the_same_for_the_same() -> None:
    values = CHART / "ci" / "default.yaml"

    first = migration_of(render(values))

    assert migration_of(render(values, settings=["api.replicas=5", "worker.threads=3"])) == first
    assert migration_of(render(values, settings=["image.tag=0.2.0"])) != first


def test_nothing_is_a_hook_but_the_test() -> None:
    for values in CI_FILES:
        for one in render(values):
            if "helm.sh/hook" in one.node["metadata"].get("annotations").texts:
                assert one.component == "test", one.key


def test_an_autoscaled_deployment_leaves_its_replicas_alone() -> None:
    made = {one.key: one for one in render(CHART / "ci" / "ha.yaml")}

    assert made["Deployment/shop-sweephand-api"].node.at("spec.replicas").value is None
    assert made["Deployment/shop-sweephand-worker-mail"].node.at("spec.replicas").value is None
    assert made["Deployment/shop-sweephand-worker-default"].node.at("spec.replicas").value == 3


def test_a_policy_for_each_component_opens_only_what_it_needs() -> None:
    made = render(CHART / "ci" / "minimal.yaml", settings=["networkPolicy.enabled=true"])
    policies = {one.component: one.node["spec"] for one in made if one.kind == "NetworkPolicy"}

    assert set(policies) == {"api", "worker", "dispatcher", "migration", "postgres"}
    assert all(policy["policyTypes"].value == ["Ingress", "Egress"] for policy in policies.values())
    assert policies["postgres"].get("egress").value is None
    assert policies["migration"].get("ingress").value is None

"""The manifests in `ops/kubernetes` against the schemas of Kubernetes, one another, and the code.

No cluster has run them. Kustomize builds what a cluster would get. Kinds of Kubernetes are checked against
its own schemas, those of KEDA and the Prometheus operator against the schemas in the sources of these two.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.main import get_command

from ops.monitoring.alerts import ALERTS
from ops.monitoring.files import FOLDER
from pipeline.cli import app
from pipeline.config.loader import load
from pipeline.config.settings import Config, host_and_port
from pipeline.config.topics import topics_of
from pipeline.serving.application import SCORE
from pipeline.tools.demo import STOP_TIMEOUT
from tests.support.go_modules import module_folder, needs_go
from tests.support.prometheus import needs_promtool
from tests.support.serving import follower_metrics

KUBERNETES: Final = FOLDER / "kubernetes"
BUILDS: Final = ("base", "overlays/example", "overlays/secured", "overlays/serving")
AUTOSCALED: Final = BUILDS[1:]
SECURED_SERVING: Final = "overlays/secured, of serving"
"""`overlays/secured` on top of `overlays/serving`, as the documentation says."""
SERVING: Final = ("overlays/serving", SECURED_SERVING)
FOLLOWER: Final = "forks-serve"
"""The name of all that is only about followers."""
VERSIONS: Final = ("1.28", "1.37")
"""Releases of Kubernetes: the oldest and the newest whose schemas there are."""
KEDA: Final = ("github.com/kedacore/keda/v2@v2.18.0", "h1:ttR223fii/4QJ0YvtrhcWHaEoezByb/t5CeFopjl6EI=")
PROMETHEUS_OPERATOR: Final = (
    "github.com/prometheus-operator/prometheus-operator@v0.76.0",
    "h1:EjGJiQVF3BUy/iygeRlN6iMBIAySMGZobEm7+7A95pI=",
)
CUSTOM: Final = {
    "ScaledObject": (KEDA, "config/crd/bases/keda.sh_scaledobjects.yaml"),
    "TriggerAuthentication": (KEDA, "config/crd/bases/keda.sh_triggerauthentications.yaml"),
    "ServiceMonitor": (
        PROMETHEUS_OPERATOR,
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    "PrometheusRule": (
        PROMETHEUS_OPERATOR,
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
}
"""Where the definition of each custom kind is: a module of Go, and a path in it."""
WRITTEN: Final = [path for path in sorted(KUBERNETES.glob("**/*.yaml")) if path.name != "kustomization.yaml"]
"""The manifests as they are written, without what Kustomize itself reads."""
KUSTOMIZE: Final = next(
    (command for command in (["kustomize", "build"], ["kubectl", "kustomize"]) if shutil.which(command[0])),
    None,
)
SECRET: Final = "forks-kafka"
"""The secret that users make: its keys are named in the documentation."""
FOLLOWER_SECRET: Final = "forks-serve-kafka"
"""The same for followers."""
DOCUMENTATION: Final = (FOLDER.parent / "docs" / "kubernetes.md").read_text()

Manifest = dict[str, Any]
Part = Callable[[str], dict[str, Manifest]]

needs_kustomize = pytest.mark.skipif(KUSTOMIZE is None, reason="needs kustomize or kubectl")


@cache
def manifests_of(folder: str) -> tuple[Manifest, ...]:
    """What Kustomize makes of a folder."""
    assert KUSTOMIZE is not None
    with TemporaryDirectory() as name:
        root = KUBERNETES
        if folder == SECURED_SERVING:
            root, folder = Path(name) / "kubernetes", "overlays/secured"
            shutil.copytree(KUBERNETES, root)
            secured = root / folder / "kustomization.yaml"
            secured.write_text(secured.read_text().replace("- ../example", "- ../serving"))
        command = [*KUSTOMIZE, str(root / folder)]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return tuple(yaml.safe_load_all(text))


def by_kind(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    """Manifests by kind: there is one of each."""
    found: dict[str, Manifest] = {}
    for each in manifests:
        assert each["kind"] not in found
        found[each["kind"]] = each
    return found


def built(folder: str) -> dict[str, Manifest]:
    """What Kustomize makes of a folder for the workers, by kind."""
    return by_kind(each for each in manifests_of(folder) if each["metadata"]["name"] != FOLLOWER)


def serving(folder: str) -> dict[str, Manifest]:
    """What Kustomize makes of a folder for the followers, by kind, and the settings that they share."""
    found = manifests_of(folder)
    return by_kind(
        each for each in found if each["metadata"]["name"] == FOLLOWER or each["kind"] == "ConfigMap"
    )


@cache
def custom_schema(kind: str) -> Draft202012Validator:
    """The schema of a custom kind, which refuses fields that it does not name."""
    module, path = CUSTOM[kind]
    definition = yaml.safe_load((module_folder(*module) / path).read_text())
    [version] = [each for each in definition["spec"]["versions"] if each["storage"]]
    return Draft202012Validator(closed(version["schema"]["openAPIV3Schema"]))


def closed(schema: Any) -> Any:
    """A schema in which objects have no other fields than those that it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        inner["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    return inner


def refused(manifest: Manifest) -> list[str]:
    """What is wrong with a manifest."""
    if manifest["kind"] in CUSTOM:
        return [error.message for error in custom_schema(manifest["kind"]).iter_errors(manifest)]
    reasons = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            reasons.append(str(error))
    return reasons


def runner(manifests: dict[str, Manifest]) -> Manifest:
    """What runs the pods: a StatefulSet of workers or a Deployment of followers."""
    [found] = [manifests[kind] for kind in ("StatefulSet", "Deployment") if kind in manifests]
    return found


def pod(manifests: dict[str, Manifest]) -> Manifest:
    spec: Manifest = runner(manifests)["spec"]["template"]["spec"]
    return spec


def program(manifests: dict[str, Manifest]) -> Manifest:
    """The container of a worker or a follower."""
    [container] = pod(manifests)["containers"]
    assert isinstance(container, dict)
    return container


def settings(manifests: dict[str, Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """What a worker or a follower reads: its file, its variables, and the secret."""
    [mount] = [each for each in program(manifests)["volumeMounts"] if each["name"] == "config"]
    assert program(manifests)["workingDir"] == mount["mountPath"]  # where forks.toml is looked for
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for key in keys_of_the_secret(SECRET):
        (secrets / key).write_text("value")
    text = manifests["ConfigMap"]["data"]["forks.toml"]
    for each in program(manifests)["volumeMounts"]:
        if each["name"] == "kafka":
            text = text.replace(each["mountPath"], str(secrets))
    (tmp_path / "forks.toml").write_text(text)
    for variable in program(manifests)["env"]:
        reference = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        values = {"metadata.name": "forks-0", None: variable.get("value")}
        monkeypatch.setenv(variable["name"], values[reference])
    monkeypatch.chdir(tmp_path)
    return load()


def keys_of_the_secret(name: str) -> set[str]:
    """The keys with which the documentation makes a secret."""
    [command] = re.findall(rf"kubectl create secret generic {name} .*?(?=```)", DOCUMENTATION, re.DOTALL)
    return set(re.findall(r"--from-(?:file|literal)=([\w.]+)=", command))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(KUBERNETES).as_posix())
def test_every_manifest_is_valid_as_it_is_written(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text())
    if manifest["kind"] in CUSTOM and shutil.which("go") is None:
        pytest.skip("needs Go, which fetches the schema")
    assert refused(manifest) == []


@needs_kustomize
@needs_go
@pytest.mark.parametrize("folder", [*BUILDS, SECURED_SERVING])
def test_every_manifest_is_valid_as_it_is_built(folder: str) -> None:
    for manifest in manifests_of(folder):
        assert refused(manifest) == [], manifest["kind"]


@needs_kustomize
def test_every_manifest_is_in_a_build() -> None:
    written = {kind_and_name(yaml.safe_load(path.read_text())) for path in WRITTEN}
    found = {kind_and_name(each) for each in manifests_of(SECURED_SERVING) if each["kind"] != "ConfigMap"}
    assert written == found


def kind_and_name(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


@needs_go
@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("base/stateful-set.yaml", "spec.template.spec.terminationGracePeriod", 60),
        ("base/stateful-set.yaml", "spec.replicas", "two"),
        ("base/network-policy.yaml", "spec.policyType", ["Egress"]),
        ("components/autoscaling/scaled-object.yaml", "spec.minReplicas", 1),
        ("components/autoscaling/scaled-object.yaml", "spec.maxReplicaCount", "8"),
        ("components/serving/deployment.yaml", "spec.serviceName", "forks"),
        ("components/serving-autoscaling/scaled-object.yaml", "spec.fallback.replica", 4),
        ("components/monitoring/service-monitor.yaml", "spec.endpoint", []),
        ("components/sasl/trigger-authentication.yaml", "spec.secretTargetRefs", []),
        ("components/monitoring/prometheus-rule.yaml", "spec.rules", []),
    ],
)
def test_a_misspelt_field_and_a_wrong_value_are_refused(name: str, path: str, value: object) -> None:
    manifest = yaml.safe_load((KUBERNETES / name).read_text())
    *parents, field = path.split(".")
    place = manifest
    for parent in parents:
        place = place[parent]
    place[field] = value
    assert len(refused(manifest)) == (1 if manifest["kind"] in CUSTOM else len(VERSIONS))


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_names_labels_and_ports_are_those_of_one_another(folder: str) -> None:
    manifests = built(folder)
    stateful, service = manifests["StatefulSet"], manifests["Service"]
    labels = stateful["spec"]["template"]["metadata"]["labels"]
    [metrics] = program(manifests)["ports"]
    selectors = [
        stateful["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in pod(manifests)["topologySpreadConstraints"]),
    ]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    assert stateful["spec"]["serviceName"] == service["metadata"]["name"]

    [port] = service["spec"]["ports"]
    probes = [program(manifests)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    [ingress] = manifests["NetworkPolicy"]["spec"]["ingress"]
    users = [*probes, *ingress["ports"]]
    assert {port["targetPort"], *(each["port"] for each in users)} == {metrics["name"]}
    assert port["port"] == metrics["containerPort"]

    volumes = {volume["name"]: volume for volume in pod(manifests)["volumes"]}
    containers = [*pod(manifests)["initContainers"], program(manifests)]
    assert {mount["name"] for each in containers for mount in each["volumeMounts"]} == volumes.keys()
    assert volumes["config"]["configMap"]["name"] == manifests["ConfigMap"]["metadata"]["name"]
    secrets = [volume["secret"]["secretName"] for volume in volumes.values() if "secret" in volume]
    assert secrets == ([SECRET] if folder.endswith("secured") else [])
    assert "Secret" not in manifests  # no manifest has one
    namespaces = {manifest["metadata"].get("namespace") for manifest in manifests.values()}
    assert namespaces == {None if folder == "base" else "forks"}


@needs_kustomize
@pytest.mark.parametrize("folder", AUTOSCALED)
def test_custom_resources_name_what_is_there(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = built(folder)
    scaled = manifests["ScaledObject"]["spec"]
    target = manifests[scaled["scaleTargetRef"]["kind"]]
    assert scaled["scaleTargetRef"]["apiVersion"] == target["apiVersion"]
    assert scaled["scaleTargetRef"]["name"] == target["metadata"]["name"]
    assert "replicas" not in target["spec"]
    assert 1 <= scaled["minReplicaCount"] < scaled["maxReplicaCount"]

    config = settings(manifests, tmp_path, monkeypatch)
    triggers = [trigger["metadata"] for trigger in scaled["triggers"]]
    assert [each["topic"] for each in triggers] == list(topics_of(config).inputs)
    for each in triggers:
        assert each["consumerGroup"] == config.kafka.group
        assert each["bootstrapServers"] == config.kafka.bootstrap

    assert_scraped(manifests["ServiceMonitor"], manifests["Service"])


def assert_scraped(monitor: Manifest, service: Manifest) -> None:
    """Check that a service is scraped once, as a job that alerts expect."""
    labels, spec = service["metadata"]["labels"], monitor["spec"]
    [expression] = spec["selector"]["matchExpressions"]
    assert expression["operator"] == "In"
    assert labels[expression["key"]] in expression["values"]
    [port] = service["spec"]["ports"]
    [endpoint] = [each for each in spec["endpoints"] if each["port"] == port["name"]]
    assert [each["targetLabel"] for each in endpoint["relabelings"]] == ["instance"]
    job = labels[spec["jobLabel"]]
    assert any(f'job="{job}"' in alert.expression for alert in ALERTS)


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_a_worker_takes_command_and_settings(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = built(folder)
    container = program(manifests)
    name, *words = container["args"]
    command: Any = get_command(app)
    command.commands[name].make_context(name, words)

    config = settings(manifests, tmp_path, monkeypatch)
    variables = [variable["name"] for variable in container["env"]]
    assert all(variable.startswith("FORKS_") for variable in variables)
    assert config.kafka.instance == "forks-0"  # the pod's name
    host, port = host_and_port(config.metrics.address or "")
    assert (host, port) == ("0.0.0.0", container["ports"][0]["containerPort"])
    [_, kafka] = manifests["NetworkPolicy"]["spec"]["egress"]
    assert [each["port"] for each in kafka["ports"]] == [host_and_port(config.kafka.bootstrap)[1]]


@needs_kustomize
def test_a_variable_that_is_no_setting_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = json.loads(json.dumps(built("base")))
    program(manifests)["env"].append({"name": "FORKS_KAFKA__INSTANCES", "value": "1"})
    with pytest.raises(Exception, match="instances"):
        settings(manifests, tmp_path, monkeypatch)


@needs_kustomize
def test_the_secret_has_the_keys_that_are_read() -> None:
    manifests = built("overlays/secured")
    text = manifests["ConfigMap"]["data"]["forks.toml"]
    [mount] = [each for each in program(manifests)["volumeMounts"] if each["name"] == "kafka"]
    references = manifests["TriggerAuthentication"]["spec"]["secretTargetRef"]
    assert {each["name"] for each in references} == {SECRET}
    read = set(re.findall(rf'"{mount["mountPath"]}/([^"]+)"', text))
    assert read == {each["key"] for each in references} == keys_of_the_secret(SECRET)
    name = manifests["TriggerAuthentication"]["metadata"]["name"]
    for trigger in manifests["ScaledObject"]["spec"]["triggers"]:
        assert trigger["authenticationRef"] == {"name": name}


@needs_kustomize
@needs_go
def test_keda_knows_the_parameters_of_the_triggers() -> None:
    manifests, sources = built("overlays/secured"), module_folder(*KEDA) / "pkg"
    builders = (sources / "scaling" / "scalers_builder.go").read_text()
    scaler = (sources / "scalers" / "kafka_scaler.go").read_text()
    for trigger in manifests["ScaledObject"]["spec"]["triggers"]:
        assert f'case "{trigger["type"]}":' in builders
        for name in trigger["metadata"]:
            assert f'"{name}"' in scaler
        assert f'"{trigger["metadata"]["sasl"]}"' in scaler
    for reference in manifests["TriggerAuthentication"]["spec"]["secretTargetRef"]:
        assert f'AuthParams["{reference["parameter"]}"]' in scaler


def parts() -> list[Any]:
    """What makes the manifests of workers or followers, and the folder."""
    workers = [pytest.param(built, folder, id=folder) for folder in BUILDS]
    return workers + [pytest.param(serving, folder, id=f"{folder}: followers") for folder in SERVING]


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_a_worker_has_time_to_stop(folder: str) -> None:
    assert pod(built(folder))["terminationGracePeriodSeconds"] >= STOP_TIMEOUT


@needs_kustomize
@pytest.mark.parametrize(("part", "folder"), parts())
def test_a_pod_may_do_nothing_else(part: Part, folder: str) -> None:
    manifests = part(folder)
    dockerfile = (FOLDER / "Dockerfile").read_text()
    context = pod(manifests)["securityContext"]
    assert f"--uid {context['runAsUser']} " in dockerfile
    assert context["runAsNonRoot"] is True
    assert pod(manifests)["automountServiceAccountToken"] is False
    images = set()
    for container in [*pod(manifests)["initContainers"], program(manifests)]:
        images.add(container["image"])
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
    assert len(images) == 1  # all of one image, also where an overlay names another


@needs_kustomize
@pytest.mark.parametrize(("part", "folder"), parts())
def test_the_cache_of_the_image_is_copied_to_where_numba_writes(part: Part, folder: str) -> None:
    manifests = part(folder)
    [copy] = pod(manifests)["initContainers"]
    [target] = copy["volumeMounts"]
    [cache] = [mount for mount in program(manifests)["volumeMounts"] if mount["name"] == target["name"]]
    assert f"NUMBA_CACHE_DIR={cache['mountPath']}" in (FOLDER / "Dockerfile").read_text()
    assert copy["command"][-2:] == [f"{cache['mountPath']}/.", target["mountPath"]]


@needs_kustomize
@pytest.mark.parametrize(("part", "folder"), parts())
def test_probes_ask_what_they_should(part: Part, folder: str) -> None:
    container = program(part(folder))
    startup, liveness, readiness = (
        container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")
    )
    paths = [probe["httpGet"]["path"] for probe in (startup, liveness, readiness)]
    assert paths == ["/livez", "/livez", "/readyz"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 120  # compiling takes 20 s and more


@needs_kustomize
@pytest.mark.parametrize("folder", AUTOSCALED)
def test_more_workers_than_partitions_are_never_started(folder: str) -> None:
    """The number of partitions stands in the documentation's command, since the topics are not made here."""
    [partitions] = re.findall(r"topics create .*--partitions (\d+)", DOCUMENTATION)
    assert built(folder)["ScaledObject"]["spec"]["maxReplicaCount"] == int(partitions)


@needs_kustomize
@pytest.mark.parametrize("folder", SERVING)
def test_names_labels_and_ports_of_followers_are_those_of_one_another(folder: str) -> None:
    manifests = serving(folder)
    deployment, service = manifests["Deployment"], manifests["Service"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    [http] = program(manifests)["ports"]
    policy = manifests["NetworkPolicy"]["spec"]
    selectors = [
        deployment["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        policy["podSelector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in pod(manifests)["topologySpreadConstraints"]),
    ]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    workers = built(folder)["StatefulSet"]["spec"]["selector"]["matchLabels"]
    assert not workers.items() <= labels.items()  # nothing of the workers is about followers

    [port] = service["spec"]["ports"]
    probes = [program(manifests)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    [ingress] = policy["ingress"]
    users = [*probes, *ingress["ports"]]
    assert {port["targetPort"], *(each["port"] for each in users)} == {http["name"]}
    assert port["port"] == http["containerPort"]
    assert_scraped(built(folder)["ServiceMonitor"], service)

    volumes = {volume["name"]: volume for volume in pod(manifests)["volumes"]}
    containers = [*pod(manifests)["initContainers"], program(manifests)]
    assert {mount["name"] for each in containers for mount in each["volumeMounts"]} == volumes.keys()
    assert volumes["config"]["configMap"]["name"] == manifests["ConfigMap"]["metadata"]["name"]
    secrets = [volume["secret"]["secretName"] for volume in volumes.values() if "secret" in volume]
    assert secrets == ([FOLLOWER_SECRET] if folder == SECURED_SERVING else [])
    namespaces = {manifest["metadata"].get("namespace") for manifest in manifests.values()}
    assert namespaces == {"forks"}


@needs_kustomize
@pytest.mark.parametrize("folder", SERVING)
def test_a_follower_takes_command_and_settings(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = serving(folder)
    container = program(manifests)
    name, *words = container["args"]
    command: Any = get_command(app)
    command.commands[name].make_context(name, words)

    config = settings(manifests, tmp_path, monkeypatch)
    host, port = host_and_port(config.serve.address)
    assert (host, port) == ("0.0.0.0", container["ports"][0]["containerPort"])
    [_, kafka] = manifests["NetworkPolicy"]["spec"]["egress"]
    assert [each["port"] for each in kafka["ports"]] == [host_and_port(config.kafka.bootstrap)[1]]
    # Proxies hear that the pod goes before it stops, and what is under way is answered: see `server_limits`.
    _, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    needed = int(pause) + 2 * config.serve.timeout / 1000 + 1
    assert pod(manifests)["terminationGracePeriodSeconds"] > needed


@needs_kustomize
def test_followers_have_a_secret_of_their_own_with_the_same_keys() -> None:
    assert keys_of_the_secret(FOLLOWER_SECRET) == keys_of_the_secret(SECRET)
    workers, followers = built(SECURED_SERVING), serving(SECURED_SERVING)
    paths = [
        [each["mountPath"] for each in program(part)["volumeMounts"] if each["name"] == "kafka"]
        for part in (workers, followers)
    ]
    assert paths[0] == paths[1]
    assert len(paths[0]) == 1


@needs_kustomize
@needs_go
def test_followers_are_scaled_by_a_metric_that_they_have() -> None:
    manifests, sources = serving("overlays/serving"), module_folder(*KEDA) / "pkg"
    scaled, deployment = manifests["ScaledObject"]["spec"], manifests["Deployment"]
    assert scaled["scaleTargetRef"]["kind"] == deployment["kind"]
    assert scaled["scaleTargetRef"]["apiVersion"] == deployment["apiVersion"]
    assert scaled["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]
    assert 2 <= scaled["minReplicaCount"] <= scaled["fallback"]["replicas"] <= scaled["maxReplicaCount"]

    [trigger] = scaled["triggers"]
    query = trigger["metadata"]["query"]
    used = dict(re.findall(r"(\w+)\{(.*?)\}", query))
    [requests] = [each for each in follower_metrics() if each.name == "forks_serve_requests"]
    assert used.keys() == {f"{requests.name}_total", "up"}
    job, namespace = manifests["Service"]["metadata"]["labels"]["app.kubernetes.io/name"], "forks"
    for selected in used.values():
        labels = dict(re.findall(r'(\w+)="(.*?)"', selected))
        assert labels.pop("job") == job
        assert labels.pop("namespace") == namespace == deployment["metadata"]["namespace"]
        assert labels in ({"route": SCORE}, {})
    assert f'case "{trigger["type"]}":' in (sources / "scaling" / "scalers_builder.go").read_text()
    scaler = (sources / "scalers" / "prometheus_scaler.go").read_text()
    for name in trigger["metadata"]:
        assert f"name={name};" in scaler or f"name={name}," in scaler, name


@needs_promtool
def test_no_requests_count_as_none_and_no_followers_as_no_data(tmp_path: Path) -> None:
    """So that a Prometheus without data scales nothing down."""
    path = KUBERNETES / "components" / "serving-autoscaling" / "scaled-object.yaml"
    [trigger] = yaml.safe_load(path.read_text())["spec"]["triggers"]
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    of = 'job="forks-serve", namespace="forks"'
    up = {"series": f"up{{{of}}}", "values": "1x10"}
    asked = {
        "series": f'forks_serve_requests_total{{{of}, route="/v1/score", status="200"}}',
        "values": "0+600x10",
    }
    tests = [
        {
            "interval": "1m",
            "input_series": given,
            "promql_expr_test": [
                {
                    "expr": trigger["metadata"]["query"],
                    "eval_time": "5m",
                    "exp_samples": [{"labels": "{}", "value": value} for value in expected],
                }
            ],
        }
        for given, expected in (([up, asked], [10]), ([up], [0]), ([], []))
    ]
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"tests": tests}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr

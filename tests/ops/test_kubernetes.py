"""The manifests in `ops/kubernetes` against the schemas of Kubernetes, one another, and the code.

No cluster has run them. Kustomize builds what a cluster would get. Kinds of Kubernetes are checked against
its own schemas, those of KEDA and the Prometheus operator against the schemas in the sources of these two.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
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
from pipeline.config.tree import Config, host_and_port
from pipeline.kafka.topics import topics_of
from pipeline.tools.demo import STOP_TIMEOUT
from tests.support.go_modules import module_folder, needs_go

KUBERNETES: Final = FOLDER / "kubernetes"
BUILDS: Final = ("base", "overlays/example", "overlays/secured")
AUTOSCALED: Final = BUILDS[1:]
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
DOCUMENTATION: Final = (FOLDER.parent / "docs" / "kubernetes.md").read_text()

Manifest = dict[str, Any]

needs_kustomize = pytest.mark.skipif(KUSTOMIZE is None, reason="needs kustomize or kubectl")


@cache
def built(folder: str) -> dict[str, Manifest]:
    """What Kustomize makes of a folder, by kind: there is one of each."""
    assert KUSTOMIZE is not None
    text = subprocess.run([*KUSTOMIZE, str(KUBERNETES / folder)], check=True, stdout=subprocess.PIPE).stdout
    manifests = list(yaml.safe_load_all(text))
    by_kind = {each["kind"]: each for each in manifests}
    assert len(by_kind) == len(manifests)
    return by_kind


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


def pod(manifests: dict[str, Manifest]) -> Manifest:
    spec: Manifest = manifests["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def worker(manifests: dict[str, Manifest]) -> Manifest:
    [container] = pod(manifests)["containers"]
    assert isinstance(container, dict)
    return container


def settings(manifests: dict[str, Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """What a worker reads: its file, its variables, and the secret."""
    [mount] = [each for each in worker(manifests)["volumeMounts"] if each["name"] == "config"]
    assert worker(manifests)["workingDir"] == mount["mountPath"]  # where forks.toml is looked for
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for key in keys_of_the_secret():
        (secrets / key).write_text("value")
    text = manifests["ConfigMap"]["data"]["forks.toml"]
    for each in worker(manifests)["volumeMounts"]:
        if each["name"] == "kafka":
            text = text.replace(each["mountPath"], str(secrets))
    (tmp_path / "forks.toml").write_text(text)
    for variable in worker(manifests)["env"]:
        reference = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        values = {"metadata.name": "forks-0", None: variable.get("value")}
        monkeypatch.setenv(variable["name"], values[reference])
    monkeypatch.chdir(tmp_path)
    return load()


def keys_of_the_secret() -> set[str]:
    """The keys with which the documentation makes the secret."""
    [command] = re.findall(rf"kubectl create secret generic {SECRET} .*?(?=```)", DOCUMENTATION, re.DOTALL)
    return set(re.findall(r"--from-(?:file|literal)=([\w.]+)=", command))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(KUBERNETES).as_posix())
def test_every_manifest_is_valid_as_it_is_written(path: Path) -> None:
    manifest = yaml.safe_load(path.read_text())
    if manifest["kind"] in CUSTOM and shutil.which("go") is None:
        pytest.skip("needs Go, which fetches the schema")
    assert refused(manifest) == []


@needs_kustomize
@needs_go
@pytest.mark.parametrize("folder", BUILDS)
def test_every_manifest_is_valid_as_it_is_built(folder: str) -> None:
    for manifest in built(folder).values():
        assert refused(manifest) == [], manifest["kind"]


@needs_kustomize
def test_every_manifest_is_in_a_build() -> None:
    kinds = {yaml.safe_load(path.read_text())["kind"] for path in WRITTEN}
    assert kinds | {"ConfigMap"} == built("overlays/secured").keys()


@needs_go
@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("base/stateful-set.yaml", "spec.template.spec.terminationGracePeriod", 60),
        ("base/stateful-set.yaml", "spec.replicas", "two"),
        ("base/network-policy.yaml", "spec.policyType", ["Egress"]),
        ("components/autoscaling/scaled-object.yaml", "spec.minReplicas", 1),
        ("components/autoscaling/scaled-object.yaml", "spec.maxReplicaCount", "8"),
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
    [metrics] = worker(manifests)["ports"]
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
    probes = [worker(manifests)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    [ingress] = manifests["NetworkPolicy"]["spec"]["ingress"]
    users = [*probes, *ingress["ports"]]
    assert {port["targetPort"], *(each["port"] for each in users)} == {metrics["name"]}
    assert port["port"] == metrics["containerPort"]

    volumes = {volume["name"]: volume for volume in pod(manifests)["volumes"]}
    containers = [*pod(manifests)["initContainers"], worker(manifests)]
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

    monitor, service = manifests["ServiceMonitor"]["spec"], manifests["Service"]
    labels = service["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    [endpoint], [port] = monitor["endpoints"], service["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    job = labels[monitor["jobLabel"]]
    assert any(f'job="{job}"' in alert.expression for alert in ALERTS)


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_a_worker_takes_command_and_settings(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = built(folder)
    container = worker(manifests)
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
    worker(manifests)["env"].append({"name": "FORKS_KAFKA__INSTANCES", "value": "1"})
    with pytest.raises(Exception, match="instances"):
        settings(manifests, tmp_path, monkeypatch)


@needs_kustomize
def test_the_secret_has_the_keys_that_are_read() -> None:
    manifests = built("overlays/secured")
    text = manifests["ConfigMap"]["data"]["forks.toml"]
    [mount] = [each for each in worker(manifests)["volumeMounts"] if each["name"] == "kafka"]
    references = manifests["TriggerAuthentication"]["spec"]["secretTargetRef"]
    assert {each["name"] for each in references} == {SECRET}
    read = set(re.findall(rf'"{mount["mountPath"]}/([^"]+)"', text))
    assert read == {each["key"] for each in references} == keys_of_the_secret()
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


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_a_worker_has_time_to_stop_and_may_do_nothing_else(folder: str) -> None:
    manifests = built(folder)
    assert pod(manifests)["terminationGracePeriodSeconds"] >= STOP_TIMEOUT
    dockerfile = (FOLDER / "Dockerfile").read_text()
    context = pod(manifests)["securityContext"]
    assert f"--uid {context['runAsUser']} " in dockerfile
    assert context["runAsNonRoot"] is True
    assert pod(manifests)["automountServiceAccountToken"] is False
    images = set()
    for container in [*pod(manifests)["initContainers"], worker(manifests)]:
        images.add(container["image"])
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
    assert len(images) == 1  # all of one image, also where an overlay names another


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_the_cache_of_the_image_is_copied_to_where_numba_writes(folder: str) -> None:
    manifests = built(folder)
    [copy] = pod(manifests)["initContainers"]
    [target] = copy["volumeMounts"]
    [cache] = [mount for mount in worker(manifests)["volumeMounts"] if mount["name"] == target["name"]]
    assert f"NUMBA_CACHE_DIR={cache['mountPath']}" in (FOLDER / "Dockerfile").read_text()
    assert copy["command"][-2:] == [f"{cache['mountPath']}/.", target["mountPath"]]


@needs_kustomize
@pytest.mark.parametrize("folder", BUILDS)
def test_probes_ask_what_they_should(folder: str) -> None:
    container = worker(built(folder))
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

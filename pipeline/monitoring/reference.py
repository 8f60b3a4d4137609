"""Make the tables of `docs/metrics.md`: ``python -m pipeline.monitoring.reference docs/metrics.md``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pipeline.monitoring.counts import FAULTS, INPUTS, OUTPUTS, STATUSES
from pipeline.monitoring.families import GROUPS, Family
from pipeline.monitoring.monitor import STAGES
from pipeline.monitoring.quality import CONSTANT, RUNNING_MEAN, RUNNING_MEANS
from pipeline.monitoring.readiness import CODES
from pipeline.monitoring.scrape import PARTITION_STATES, RESTART_REASONS

LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "partition": "the partition's number",
        "topic": f"{', '.join(f'`{name}`' for name in (*INPUTS, *OUTPUTS))}: a topic by its role, whatever "
        "its name",
        "input": "`interactions`, `labels`",
        "status": ", ".join(f"`{status}`" for status in STATUSES),
        "reason": f"of dead letters {', '.join(f'`{fault}`' for fault in FAULTS)}; of restarts "
        f"{', '.join(f'`{reason}`' for reason in RESTART_REASONS)}; of "
        "`forks_not_ready` see [above](#why-a-worker-is-not-ready)",
        "stage": ", ".join(f"`{stage}`" for stage in STAGES),
        "state": ", ".join(f"`{state}`" for state in PARTITION_STATES),
        "learner": "`champion`, the challengers by name, and the baselines "
        f"`{RUNNING_MEANS}`, the sum of the running means of the first two entities "
        f"(without entities `{RUNNING_MEAN}`), and "
        f"`{CONSTANT}`, the best constant prediction of the window",
        "table": "a table of running statistics, or a live table, by its name",
        "which": "`largest`, `median`, `smallest`",
        "client": "`consumer`, `producer`",
        "broker": "the broker's id",
        "answer": "`found`, `unknown`, `failed`",
    }
)
"""The values of each label."""

MARKER: Final = "<!-- From here on made by python -m pipeline.monitoring.reference docs/metrics.md -->"
"""What is above in the document is written by hand."""

TAIL: Final = """
### Process

Those of [prometheus-client](https://github.com/prometheus/client_python): `process_cpu_seconds_total`,
`process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_open_fds`, `process_max_fds`,
`process_start_time_seconds`.

## Labels

| label | values |
|---|---|
"""


def tables() -> str:
    """Return the part of `docs/metrics.md` from `MARKER` on."""
    lines = [MARKER, "\n\n## Why a worker is not ready\n\n| code | meaning |\n|---|---|\n"]
    lines += [f"| `{code}` | {text} |\n" for code, text in CODES.items()]
    lines.append("\n## Metrics\n\nA histogram has `_bucket`, `_count` and `_sum` behind its name.\n")
    for group, families in GROUPS.items():
        lines.append(f"\n### {group}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n")
        lines += [_row(family) for family in families]
    lines.append(TAIL)
    lines += [f"| `{label}` | {values} |\n" for label, values in LABELS.items()]
    return "".join(lines)


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    text = family.text.replace("|", "\\|")
    return f"| `{family.exposed_name}` | {family.kind} | {labels} | {text} |\n"


def main(path: Path) -> None:
    """Replace the tables of the document at a path."""
    text = path.read_text()
    path.write_text(text[: text.index(MARKER)] + tables())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Render the report of an audit as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.tools.audit.differences import Finding
from pipeline.tools.audit.group import PartitionReport, Report, ScoreLogReport


def render(report: Report) -> RenderableType:
    """Render the checks one per line, the first difference of each partition, and the verdict."""
    parts: list[RenderableType] = [_checked(partition) for partition in report.partitions]
    parts += [_first(partition) for partition in report.partitions if partition.findings]
    parts += [
        _libraries(partition)
        for partition in report.partitions
        if any(partition.differences or part.other_arithmetic for part in partition.other_libraries)
    ]
    if report.scores is not None:
        parts.append(_scores(report.scores))
    if report.differences:
        parts.append(Text(f"{report.differences:,} differences", style="bold red"))
    else:
        parts.append(Text("no difference: the outputs follow from the inputs", style="bold green"))
    return Group(*parts)


def _checked(report: PartitionReport) -> Table:
    begin = "the start" if not report.folded_from else f"the snapshot of {report.folded_from:,} outcomes"
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    epochs = (
        f"; earlier epochs, under other settings: {report.earlier_epochs}" if report.earlier_epochs else ""
    )
    table.add_row(Text(f"partition {report.partition}", style="bold"), Text(f"learned from {begin}{epochs}"))
    for name, count in report.checked.items():
        table.add_row(f"{count:,}", Text(name))
    if not report.checked:
        table.add_row("0", Text("records: no worker has committed anything yet"))
    table.add_row(f"{report.differences:,}", Text("differences"))
    return table


def _scores(scores: ScoreLogReport) -> Text:
    """Return what was checked of a follower's log, and what was not."""
    lines = [f"log of a follower: {scores.derived:,} scores derived again"]
    lines += [f"not checked: {count:,} {reason}" for reason, count in scores.not_derived.items()]
    if scores.first is not None:
        lines.append(f"the first of the lines that cannot be read: {scores.first}")
    return Text("\n".join(lines))


def _first(report: PartitionReport) -> Text:
    finding = report.findings[0]
    return Text(
        f"first difference: {location(finding)}\n  expected  {finding.expected}\n  found     {finding.found}"
    )


def _libraries(report: PartitionReport) -> Text:
    """Return which outputs were computed with other libraries, as that may be why they differ."""
    lines = [
        f"predictions {part.predictions_from:,} to {part.predictions_until - 1:,} of partition "
        f"{report.partition} were made with {part.libraries}: "
        + ("they are not derived again" if part.other_arithmetic else "their last bits may differ")
        + " (docs/upgrading.md)"
        for part in report.other_libraries
        if part.predictions_until > part.predictions_from and (report.differences or part.other_arithmetic)
    ]
    return Text("\n".join(lines))


def location(finding: Finding) -> str:
    """Return the topic, partition and offset of a difference as text, or the file and the line.

    Examples
    --------
    >>> location(Finding("outcomes", 0, 12, "label true", "label false"))
    'outcomes, partition 0, offset 12'
    >>> location(Finding("outcomes", 0, None, "sequence 4", "the end"))
    'outcomes, partition 0'
    """
    if finding.line is not None:
        return f"{finding.topic}, line {finding.line}, partition {finding.partition}"
    offset = "" if finding.offset is None else f", offset {finding.offset}"
    return f"{finding.topic}, partition {finding.partition}{offset}"

from __future__ import annotations

from io import StringIO

from rich.console import Console

from pipeline.recovery.libraries import OtherLibraries
from pipeline.tools.audit import Report, render
from pipeline.tools.audit.differences import FINDINGS_PER_TOPIC, AuditResult, Finding
from pipeline.tools.audit.group import PartitionReport

OTHERS = [OtherLibraries(1_300, 1_301, 900, "numba 1.2 (here 2.0)", False)]
EARLIER = OtherLibraries(0, 1_200, 800, "arithmetic 1 (here 2)", True)


def text(report: Report) -> str:
    console = Console(width=100, file=StringIO(), soft_wrap=True)
    console.print(render(report))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_clean_report_lists_what_was_checked() -> None:
    checked = {"outcomes learned": 1_234, "dead letters": 0}
    rendered = text(
        Report(0, [PartitionReport(0, 0, 0, OTHERS, checked, 0, []), PartitionReport(1, 0, 0, [], {}, 0, [])])
    )
    assert [line.strip() for line in rendered.splitlines()] == [
        "partition 0  learned from the start",
        "1,234  outcomes learned",
        "0  dead letters",
        "0  differences",
        "partition 1  learned from the start",
        "0  records: no worker has committed anything yet",
        "0  differences",
        "no difference: the outputs follow from the inputs",
    ]


def test_the_first_difference_of_a_partition_is_shown_in_full() -> None:
    findings = [Finding("outcomes", 1, 12, "label true", "label false"), Finding("outcomes", 1, 13, "a", "b")]
    rendered = text(Report(2, [PartitionReport(1, 500, 2, [], {"outcomes learned": 3}, 2, findings)]))
    assert "learned from the snapshot of 500 outcomes; earlier epochs, under other settings: 2\n" in rendered
    assert "first difference: outcomes, partition 1, offset 12\n  expected  label true\n" in rendered
    assert "offset 13" not in rendered
    assert rendered.endswith("2 differences\n")


def test_other_libraries_are_named_beside_differences() -> None:
    finding = Finding("outcomes", 1, 12, "label true", "label false")
    rendered = text(Report(1, [PartitionReport(1, 0, 0, OTHERS, {}, 1, [finding])]))
    assert (
        "predictions 1,300 to 1,300 of partition 1 were made with numba 1.2 (here 2.0): their last bits may"
        in rendered
    )


def test_an_epoch_without_predictions_is_not_named() -> None:
    learned_only = OtherLibraries(20, 20, 12, "arithmetic 1 (here 2)", other_arithmetic=True)
    rendered = text(Report(0, [PartitionReport(1, 500, 0, [learned_only], {}, 0, [])]))
    assert "arithmetic" not in rendered


def test_another_arithmetic_is_always_named() -> None:
    rendered = text(Report(0, [PartitionReport(1, 500, 0, [EARLIER, *OTHERS], {}, 0, [])]))
    assert (
        "predictions 0 to 1,199 of partition 1 were made with arithmetic 1 (here 2): they are not derived "
        "again (docs/upgrading.md)" in rendered
    )
    assert "numba" not in rendered
    assert "no difference" in rendered


def test_a_flood_in_one_topic_leaves_room_for_others() -> None:
    result = AuditResult(0)
    for offset in range(3 * FINDINGS_PER_TOPIC):
        result.add_difference("predictions", offset, "one", "other")
    result.add_difference("outcomes", 5, "one", "other")
    assert result.differences == 3 * FINDINGS_PER_TOPIC + 1
    assert len(result.findings) == FINDINGS_PER_TOPIC + 1
    assert result.findings[-1].topic == "outcomes"

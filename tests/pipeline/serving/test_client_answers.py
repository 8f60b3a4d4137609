"""The client's types beside those of the server, which it cannot import."""

from __future__ import annotations

import msgspec
import pytest

from forks.client import answers
from pipeline.serving import answers as served
from pipeline.serving import scoring_answers


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (answers.Scores, scoring_answers.ScoreAnswer),
        (answers.ItemScore, scoring_answers.ItemScore),
        (answers.Explanation, served.Explanation),
        (answers.NearPoint, served.NearPoint),
        (answers.ScoreTerm, served.ScoreTerm),
    ],
)
def test_the_client_reads_every_field_that_a_follower_writes(
    read: type[msgspec.Struct], written: type[msgspec.Struct]
) -> None:
    needed = {field.name for field in msgspec.structs.fields(read) if field.required}
    always = {field.name for field in msgspec.structs.fields(written) if field.required}
    assert {*read.__struct_fields__} == {*written.__struct_fields__}
    assert needed <= always

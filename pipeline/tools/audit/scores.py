"""Derive the scores again that followers have logged, each by the model that had learned as many outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from pipeline.config.stream import Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.features.live_tables import Rows
from pipeline.model.model import Model
from pipeline.records.encoding import encode
from pipeline.records.inputs import Interaction
from pipeline.recovery.libraries import ARITHMETIC_HERE
from pipeline.serving.exploration import choose
from pipeline.serving.score_log import LoggedChoice
from pipeline.serving.scoring import message_values
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.epochs import SettingsEpochs
from pipeline.tools.audit.live_tables import TableReplay
from pipeline.tools.audit.score_index import IndexedLine
from pipeline.tools.audit.topic_records import TableRecords

SCORES_CHECKED: Final = "scores of followers derived again"
CHOICES_CHECKED: Final = "candidates that followers have drawn, drawn again"
EARLIER: Final = "lines of followers by models that this audit does not derive, as those before its snapshot"
LATER: Final = "lines of followers by models that have learned more than this audit reads"
OTHER_ARITHMETIC: Final = "lines of followers with another arithmetic, whose scores have other last bits"
COMPACTED: Final = "lines of followers with rows of tables that compaction has taken away"
NOT_DERIVED: Final = (EARLIER, LATER, OTHER_ARITHMETIC, COMPACTED)


class ScoreCheck:
    """Check of what followers have answered of one partition.

    Parameters
    ----------
    lines
        The lines, by model version.
    stream
        Definition of the stream.
    tables
        The records of the live tables, in the order of the stream's definition.
    result
        Result to add checks and differences to.
    """

    def __init__(
        self,
        lines: Iterable[IndexedLine],
        stream: Stream,
        tables: Iterable[TableRecords],
        result: AuditResult,
    ) -> None:
        self._lines = iter(lines)
        self._next = next(self._lines, None)
        self._stream = stream
        self._result = result
        self._tables = [
            TableReplay(Rows(features), records, 0, result)
            for features, records in zip(FeatureSet.of(stream).tables, tables, strict=True)
        ]
        result.checked[SCORES_CHECKED] += 0

    def check(self, version: int, epochs: SettingsEpochs) -> None:
        """Derive the answers of models that have learned so many outcomes.

        Parameters
        ----------
        version
            Number of outcomes; it grows from call to call.
        epochs
            The models, as they are before the outcome of that sequence is learned.
        """
        while self._next is not None and self._next.line.model_version <= version:
            self._check(self._next, epochs)
            self._next = next(self._lines, None)

    def finish(self) -> None:
        """Count the lines of models that the audit does not come to."""
        while self._next is not None:
            self._result.checked[LATER] += 1
            self._next = next(self._lines, None)

    def _check(self, logged: IndexedLine, epochs: SettingsEpochs) -> None:
        line = logged.line
        model = epochs.model_of_epoch(line.epoch)
        if model is None:
            self._add(logged, f"an epoch of settings up to {epochs.count - 1}", f"epoch {line.epoch}")
            return
        if line.arithmetic != ARITHMETIC_HERE:
            self._result.checked[OTHER_ARITHMETIC] += 1
            return
        if model.outcomes_learned != line.model_version:
            self._result.checked[EARLIER] += 1
            return
        try:
            candidates = line.candidates(self._stream)
        except ValueError as error:
            self._add(logged, "candidates of this stream", str(error))
            return
        if line.challenger is not None and line.challenger not in model.challengers:
            self._add(logged, f"a challenger of {[*model.challengers]}", repr(line.challenger))
            return
        if not self._apply_tables(logged, candidates):
            return
        self._compare(logged, model, candidates)

    def _apply_tables(self, logged: IndexedLine, candidates: list[Interaction]) -> bool:
        """Apply the tables as far as the follower had; return whether their rows are known."""
        tables = logged.line.tables
        names = [table.rows.features.name for table in self._tables]
        if [*tables] != names:
            self._add(logged, f"offsets of the tables {names}", f"{tables}")
            return False
        for table in self._tables:
            features = table.rows.features
            end = tables[features.name]
            table.advance(end)
            entities = {each.ids[features.entity] for each in candidates}
            if table.end != end or any(map(table.has_gap, entities)):
                self._result.checked[COMPACTED] += 1
                return False
        return True

    def _compare(self, logged: IndexedLine, model: Model, candidates: list[Interaction]) -> None:
        """Predict the candidates one by one, and compare bits."""
        line = logged.line
        values = message_values(model, candidates, [table.rows for table in self._tables])
        rows = np.empty((len(candidates), 0)) if values is None else values
        scored = zip(candidates, rows.tolist(), line.scores, strict=True)
        features = []
        for number, (candidate, own, found) in enumerate(scored):
            output = model.predict(candidate, own)
            features.append(output.features)
            score = output.score
            if line.challenger is not None:
                assert output.challengers is not None
                score = output.challengers[line.challenger]
            self._result.checked[SCORES_CHECKED] += 1
            if encode(score) != encode(found):
                self._add(logged, f"score {score!r} of candidate {number}", f"score {found!r}")
                return
        if line.explored:
            self._compare_choice(
                logged, line.explored, lambda: model.variances(candidates, np.array(features)).tolist()
            )

    def _compare_choice(
        self, logged: IndexedLine, explored: LoggedChoice, variances: Callable[[], list[float]]
    ) -> None:
        """Draw the candidate again, and compare the bits of all propensities."""
        by = explored.by
        choice = choose(
            by, explored.event_id, logged.line.scores, variances() if by.needs_variances else None
        )
        self._result.checked[CHOICES_CHECKED] += 1
        for number, (each, found) in enumerate(zip(choice.propensities, explored.propensities, strict=True)):
            if encode(each) != encode(found):
                self._add(logged, f"propensity {each!r} of candidate {number}", f"propensity {found!r}")
                return
        if choice.chosen != explored.chosen:
            self._add(logged, f"candidate {choice.chosen} as the one drawn", f"candidate {explored.chosen}")

    def _add(self, logged: IndexedLine, expected: str, found: str) -> None:
        self._result.add_difference(str(logged.file), None, expected, found, line=logged.number)

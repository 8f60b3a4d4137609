"""Scores of candidates: those of one by one, of every kind of stream, and the model stays as it is."""

from __future__ import annotations

import math
from collections import OrderedDict

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Challenger, Learner
from pipeline.config.stream import Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.features.live_tables import Rows, TableRecord
from pipeline.features.tables import Tables
from pipeline.features.targets import target_of
from pipeline.model.challengers import resolve_challengers
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.inputs import Interaction
from pipeline.records.outcome_decoder import DecodedOutcomes
from pipeline.records.outputs import Outcome
from pipeline.serving.answers import UnknownChallengerError
from pipeline.serving.candidates import CandidateType
from pipeline.serving.origins import PointOrigins
from pipeline.serving.scoring import message_values
from pipeline.serving.served_model import ServedModel
from tests.pipeline.model.test_score_terms import CHANGES
from tests.pipeline.model.test_score_terms import stream as kuairec_with
from tests.support.builders import new_model
from tests.support.examples import examples
from tests.support.live_tables import STREAM
from tests.support.recording import eventful_run

STREAMS = {name: kuairec_with(name) for name in CHANGES} | {"live tables": STREAM}
MAX_ENTITIES = 5
CHALLENGERS = {
    "wider": Challenger.model_validate({"learner": "forks", "budget": 8, "rank": 4, "cycle": 3}),
    "rival": Challenger.model_validate({"learner": "nogd", "budget": 4, "rank": 2}),
}


def served_model(name: str) -> ServedModel:
    stream = STREAMS[name]
    features, target = FeatureSet.of(stream), target_of(stream.target)
    learner = Learner.model_validate({"budget": 6, "landmarks": 3, "rank": 3, "cycle": 3})
    challengers = {} if name == "numbers" else CHALLENGERS
    model = Model(
        learner_settings(learner, 0, features=features, losses=target.losses),
        Tables(),
        MAX_ENTITIES,
        resolve_challengers(challengers, 0, features, target.losses),
        features=features,
        target=target,
    )
    rows = [Rows(each) for each in features.tables]
    return ServedModel(0, model, {}, 0, rows=rows, versions={each.features.name: 0 for each in rows})


def candidate(stream: Stream, rng: np.random.Generator, number: int, entities: int = 9) -> Interaction:
    kind = CandidateType.of(stream)
    own = {"size": float(rng.normal()), "mood": int(rng.integers(4)), "load": float(rng.normal())}
    ids = [int(rng.integers(entities)) for _ in stream.entities]
    return kind.make(1_000 * number, ids, [own[each] for each in kind.names])


class LearnedIds:
    """The entities whose labels were learned last, as far as there is room."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, None] = OrderedDict()

    def learn(self, entity: object) -> None:
        self._kept.pop(entity, None)
        self._kept[entity] = None
        if len(self._kept) > MAX_ENTITIES:
            self._kept.popitem(last=False)

    def __contains__(self, entity: object) -> bool:
        return entity in self._kept


@pytest.mark.parametrize("name", STREAMS)
@examples(25)
@given(st.integers(0, 30), st.integers(1, 12), st.integers(0, 1_000))
def test_scores_are_those_of_one_by_one_and_the_model_stays_as_it_is(
    name: str, events: int, count: int, seed: int
) -> None:
    served, stream, rng = served_model(name), STREAMS[name], np.random.default_rng(seed)
    model = served._model
    learned = [LearnedIds() for _ in stream.entities]
    for rows in served.rows:
        numbers = np.array([1.0, *rng.normal(size=len(rows.features.names) - 1)])
        for place, _ in rows.features.categories:
            numbers[place] = 1.0
        rows.apply(TableRecord(b"3", -1, numbers.tobytes()))
    for number in range(events):
        event = candidate(stream, rng, number)
        values = message_values(model, [event], served.rows)
        own = [] if values is None else values[0].tolist()
        features = model.predict(event, own).features
        model.learn_example(event, features, float(rng.random()) * 2.0)
        for known, entity in zip(learned, event.ids, strict=True):
            known.learn(entity)
    made = [candidate(stream, rng, events + number, 12) for number in range(count)]
    before = pack(model)
    scores = served.score_candidates(made, explain=True, variances=True)
    values = message_values(model, made, served.rows)
    outputs = [
        model.predict(each, [] if values is None else values[number].tolist())
        for number, each in enumerate(made)
    ]
    assert scores.scores == [each.score for each in outputs]
    assert scores.probabilities == [each.probability for each in outputs]
    assert scores.predicted == [each.predicted for each in outputs]
    assert scores.variances == [
        float(model.learner.variances(model.context(each, output.features)[None])[0])
        for each, output in zip(made, outputs, strict=True)
    ]
    tables = {
        part.place for each in model.features.layout.tables if len(each.parts) == 1 for part in each.parts
    }
    assert scores.unknown == [
        tuple(
            entity_name
            for place, entity_name in enumerate(model.features.entity_names)
            if place in tables and each.ids[place] not in learned[place]
        )
        for each in made
    ]
    assert scores.explanations is not None
    for explanation, score in zip(scores.explanations, scores.scores, strict=True):
        assert abs(math.fsum(term.value for term in explanation.terms) - score) < 1e-12
        distances = [point.distance for point in explanation.nearest]
        assert distances == sorted(distances)
        assert all(0.0 <= point.kernel <= 1.0 for point in explanation.nearest)
    for challenger in model.challengers:
        other = served.score_candidates(made, challenger, explain=True)
        assert other.scores == [(each.challengers or {})[challenger] for each in outputs]
        assert other.explanations is not None
        for explanation, score in zip(other.explanations, other.scores, strict=True):
            assert abs(math.fsum(term.value for term in explanation.terms) - score) < 1e-12
    assert pack(model) == before


def test_a_challenger_that_is_not_there_is_named() -> None:
    served, rng = served_model("kuairec"), np.random.default_rng(0)
    with pytest.raises(UnknownChallengerError, match="no challenger 'other'; known are: rival, wider"):
        served.score_candidates([candidate(STREAMS["kuairec"], rng, 0)], "other")


def columns(outcomes: list[Outcome]) -> DecodedOutcomes:
    return DecodedOutcomes.of(outcomes, np.array([each.features for each in outcomes]), entities=2)


@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_stored_points_are_traced_to_the_outcomes_they_came_from(at_once: int) -> None:
    """Told from the features of the outcomes: the nearest point of a stored event is the event itself."""
    run = eventful_run()
    outcomes = [msgspec.json.decode(each.value or b"", type=Outcome) for each in run.outcomes]
    one_by_one, together = PointOrigins(), PointOrigins()
    first, second = new_model(), new_model()
    expected: dict[int, int] = {}
    for outcome in outcomes:
        before, updates = first.learner.stored_events, first.learner.updates
        first.learn_one(outcome)
        one_by_one.note(first.learner, updates, columns([outcome]))
        for each in {*first.learner.stored_events} - {*before}:
            assert each is not None
            expected[each] = outcome.sequence
    for begin in range(0, len(outcomes), at_once):
        updates, chunk = second.learner.updates, columns(outcomes[begin : begin + at_once])
        second.learn_columns(chunk)
        together.note(second.learner, updates, chunk)
    stored = second.learner.stored_events
    assert stored == first.learner.stored_events
    assert len(stored) == 4
    found = [together.of(each) for each in stored]
    assert found == [one_by_one.of(each) for each in stored]
    assert found == [expected[each] for each in stored if each is not None]
    labelled = {each.sequence for each in outcomes if each.label is not None}
    assert {*found} <= labelled

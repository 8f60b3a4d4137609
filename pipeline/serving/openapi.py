"""The description of a follower's HTTP interface: OpenAPI 3.1, made of the types of requests and answers."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec

from pipeline.serving.scoring_answers import (
    LiveAnswer,
    ModelAnswer,
    Problem,
    ReadyAnswer,
    ScoreAnswer,
)
from pipeline.serving.scoring_requests import NeededField, RequestDecoder

_REF = "#/components/schemas/{name}"


def document(stream: str, decoder: RequestDecoder) -> dict[str, Any]:
    """Return the description for a stream.

    Parameters
    ----------
    stream
        The stream's name.
    decoder
        What decodes requests.
    """
    answers: list[Any] = [ScoreAnswer, ModelAnswer, ReadyAnswer, LiveAnswer, Problem]
    _, schemas = msgspec.json.schema_components(
        [decoder.request_type, decoder.body_type, *answers], ref_template=_REF
    )
    schemas["ScoreRequests"]["properties"]["requests"]["items"] = _ref("ScoreRequest")  # decoded one by one
    for name, bounded in (("ScoreRequest", ["items"]), ("ScoreRequests", ["items", "requests"])):
        for each in bounded:
            schemas[name]["properties"][each] |= {"minItems": 1, "maxItems": decoder.max_candidates}
    needed = [_needed(each) for each in decoder.needed]
    schemas["ScoreRequest"] |= {"required": ["items"], "allOf": needed}
    schemas["ScoreRequests"] |= {
        "oneOf": [{"required": ["items"]}, {"required": ["requests"]}],
        "if": {"required": ["items"]},
        "then": {"allOf": needed},
    }
    answered = {"type": "array", "items": {"anyOf": [_ref("ScoreAnswer"), _ref("Problem")]}}
    schemas["ScoreAnswers"] = {  # msgspec has no schema for one of two types without a tag
        "type": "object",
        "description": "The answers to several requests, in their order.",
        "properties": {"answers": answered},
        "required": ["answers"],
    }
    problems = {
        "400": "The body is not JSON, or the query cannot be read.",
        "404": "There is no such challenger.",
        "408": "The body did not arrive in time.",
        "413": "The body is too long.",
        "415": "The content type is another one.",
        "422": "A field is missing or wrong, or there are no candidates or too many.",
        "503": "The partition's model is not restored yet, or there is too much to do.",
    }
    score = {
        "operationId": "score",
        "summary": "Score candidates with the models as they are now",
        "description": "Each item, together with the stream's fields beside the items, is an interaction "
        "that has not happened. `requests` are several such requests, each of which is answered or refused "
        "by itself. Nothing is learned.",
        "parameters": [
            {
                "name": "challenger",
                "in": "query",
                "required": False,
                "schema": {"type": "string"},
                "description": "Scores with this challenger, not the champion.",
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": _ref("ScoreRequests")},
                "application/x-ndjson": {"schema": _ref("ScoreRequest")},
            },
        },
        "responses": {
            "200": {
                "description": "The scores, in the order of the candidates.",
                "content": {
                    "application/json": {"schema": {"anyOf": [_ref("ScoreAnswer"), _ref("ScoreAnswers")]}},
                    "application/x-ndjson": {"schema": {"anyOf": [_ref("ScoreAnswer"), _ref("Problem")]}},
                },
            },
            **{status: _problem(status, text) for status, text in problems.items()},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Scores of the stream {stream}",
            "version": version("forks-stream"),
            "summary": "Followers that answer with the very model of the stream",
        },
        "paths": {
            "/v1/score": {"post": score},
            "/v1/model": {"get": _get("model", "Settings, versions and lag of the models", "ModelAnswer")},
            "/livez": {"get": _get("live", "Whether the follower is alive", "LiveAnswer", red=True)},
            "/readyz": {
                "get": _get("ready", "Whether all models are restored and near", "ReadyAnswer", red=True)
            },
            "/metrics": {
                "get": {
                    "operationId": "metrics",
                    "summary": "Metrics for Prometheus",
                    "responses": {"200": {"description": "Metrics.", "content": {"text/plain": {}}}},
                }
            },
        },
        "components": {"schemas": schemas},
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(name=name)}


def _needed(field: NeededField) -> dict[str, Any]:
    """Return the condition that a field stands beside the items or in each of them."""
    *names, last = field.parts
    has: dict[str, Any] = {"required": [last]}
    for name in reversed(names):
        has = {"required": [name], "properties": {name: has}}
    in_items = {"properties": {"items": {"items": has}}}
    return {"anyOf": [has] * field.beside + [in_items] * field.in_items}


def _problem(status: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": text,
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }
    if status == "503":
        seconds = {"description": "Seconds after which asking again may help.", "schema": {"type": "integer"}}
        found["headers"] = {"Retry-After": seconds}
    return found


def _get(name: str, summary: str, answer: str, *, red: bool = False) -> dict[str, Any]:
    content = {"application/json": {"schema": _ref(answer)}}
    responses = {"200": {"description": f"{summary}.", "content": content}}
    if red:
        responses["503"] = {"description": "It is not.", "content": content}
    return {"operationId": name, "summary": summary, "responses": responses}

"""Requests for scores, as HTTP brings them: decoded with types that are made of the stream's definition."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from starlette.exceptions import HTTPException

from pipeline.config.pointer import nested
from pipeline.config.settings import Join, Serve
from pipeline.config.stream import CARRIED, Stream
from pipeline.records.entities import entity_fields
from pipeline.records.fields import Id, Timestamp
from pipeline.records.input_decoders import interaction_fields
from pipeline.records.inputs import Interaction, feature_field
from pipeline.serving.candidates import CandidateType

OWN_FIELDS: Final = ("items", "time", "explain", "requests")
"""Fields of a request that are not the stream's. A stream's field with such a name stands in each item."""
EXPLORE: Final = "explore"
"""One more, where the configuration says how to explore."""
MALFORMED: Final = 400
INVALID: Final = 422
_AT: Final = re.compile(r"(?P<text>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_NAMED: Final = re.compile(r"Object (?:contains unknown|missing required) field `(.*)`", re.DOTALL)


class RequestError(HTTPException):
    """A request that cannot be answered.

    Parameters
    ----------
    status
        The status of HTTP.
    detail
        What is wrong, and what to do.
    field
        Where it is wrong, such as ``items[3].video_id``; None where it is no field.
    retry_after
        Seconds after which asking again may help; None if it does not help.
    close
        Whether the connection is of no more use, since the rest of the request is not read.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        field: str | None = None,
        retry_after: float | None = None,
        *,
        close: bool = False,
    ) -> None:
        headers = {"connection": "close"} if close else {}
        if retry_after is not None:
            headers["retry-after"] = str(max(1, round(retry_after)))
        super().__init__(status, detail, headers)
        self.field = field
        self.retry_after = retry_after


class ScoreRequest(NamedTuple):
    """Candidates of one user."""

    keys: set[Id]
    """The keys that their messages would have."""
    candidates: list[Interaction]
    time: int
    """Their time, in milliseconds."""
    explain: bool
    """Whether their scores are to be explained."""
    event_id: Id | None = None
    """The event for which a candidate is to be drawn; None where none is."""


_Getter: TypeAlias = Callable[[Any], Any]
"""Returns what a field is, or `UNSET`."""


class _Leaf(NamedTuple):
    """A field of the stream's interactions."""

    path: str
    """Its name in messages."""
    of_item: _Getter
    beside: _Getter
    """Returns what it is beside the items."""
    optional: bool


class NeededField(NamedTuple):
    """A field that candidates have to have."""

    parts: tuple[str, ...]
    """The names on the way to it."""
    in_items: bool
    """Whether it may stand in each item."""
    beside: bool
    """Whether it may stand beside the items."""


class RequestDecoder:
    """Decodes requests for scores.

    Each item, together with the stream's fields beside the items, is an interaction as a message would have
    it, without event id and time. What is in an item wins over what is beside. Numbers that no model uses may
    be left out. Where interactions are slates, an item has the fields of a slate's items, and all others
    stand beside.

    Parameters
    ----------
    stream
        The definition of the stream.
    serve, join
        How many candidates a request may have, and how far ahead its time may be.

    Attributes
    ----------
    max_candidates
        Candidates of a request, and requests of a body, at most.
    needed
        The fields that candidates have to have.

    Examples
    --------
    >>> from pipeline.config.stream import KUAIREC
    >>> decoder = RequestDecoder(KUAIREC, Serve(), Join())
    >>> found = decoder.decode(b'{"user_id": 7, "items": [{"video_id": 1}, {"video_id": "b"}], "time": 5}')
    >>> [candidate.ids for candidate in found.candidates], found.keys
    ([(7, 1), (7, 'b')], {7})
    """

    def __init__(self, stream: Stream, serve: Serve, join: Join) -> None:
        self.max_candidates = serve.max_candidates
        self._max_ahead = join.max_ahead
        keyed_by_event = stream.key_entity is None
        self._explores = serve.explore != "off"
        left_out = {"timestamp", "time_of_day", *CARRIED}
        if not (keyed_by_event or self._explores):
            left_out.add("event_id")
        fields = [field for field in interaction_fields(stream) if field.name not in left_out]
        of_item = [field for field in fields if field.of_item or not stream.has_slates]
        of_message = [field for field in fields if not field.of_item]
        tree, beside = (nested((field.parts, field) for field in each) for each in (of_item, of_message))
        own = (EXPLORE, *OWN_FIELDS) if self._explores else OWN_FIELDS
        around = {name: entry for name, entry in beside.items() if name not in own}
        more: list[Any] = [(EXPLORE, bool, False)] if self._explores else []
        self.item_type = _node("Item", tree)
        self.request_type = _request_type("ScoreRequest", around, self.item_type, more)
        requests: list[Any] = [("requests", list[msgspec.Raw] | UnsetType, UNSET)]
        self.body_type = _request_type("ScoreRequests", around, self.item_type, more + requests)
        self._request = msgspec.json.Decoder(self.request_type)
        self._body = msgspec.json.Decoder(self.body_type)
        leaves = {
            field.name: _Leaf(
                ".".join(field.parts),
                _getter(tree if field in of_item else {}, field.parts),
                _getter(around if field in of_message else {}, field.parts),
                field.optional or (field.name == "event_id" and not keyed_by_event),
            )
            for field in fields
        }
        ids = entity_fields(len(stream.entities))
        self._key = "event_id" if stream.key_entity is None else ids[stream.key_entity]
        names = [feature_field(number) for number in range(len(stream.features))]
        self._wanted = [*ids, *(name for name in names if name in leaves)]
        read = {self._key, *self._wanted}
        self._leaves = {name: leaf for name, leaf in leaves.items() if name in read}
        self.needed = [
            NeededField(field.parts, field in of_item, field in of_message and field.parts[0] in around)
            for field in fields
            if field.name in self._leaves and not self._leaves[field.name].optional
        ]
        self._event_id = leaves.get("event_id")
        self._make = CandidateType.of(stream).of_values
        self._known = ", ".join([*around, *own[:-1]])

    def decode_body(self, body: bytes) -> ScoreRequest | list[msgspec.Raw]:
        """Return the request that a body is, or the requests in it, which are not decoded yet.

        Raises
        ------
        RequestError
            The body is none.
        """
        found = self._parse(self._body, body)
        if found.requests is UNSET:
            return self._checked(found)
        if found.items is not UNSET:
            raise RequestError(INVALID, "there are items or requests, not both", "requests")
        if not found.requests:
            raise RequestError(INVALID, "there are no requests", "requests")
        if len(found.requests) > self.max_candidates:
            raise RequestError(INVALID, self._too_many(len(found.requests), "requests"), "requests")
        requests: list[msgspec.Raw] = found.requests
        return requests

    def decode(self, text: bytes | msgspec.Raw) -> ScoreRequest:
        """Return the request of one user.

        Raises
        ------
        RequestError
            The text is none.
        """
        return self._checked(self._parse(self._request, text))

    def _parse(self, decoder: msgspec.json.Decoder[Any], text: bytes | msgspec.Raw) -> Any:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError as error:
            raise self._invalid(str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestError(MALFORMED, f"the body is not JSON: {error}") from None

    def _invalid(self, error: str) -> RequestError:
        """Return what is wrong with a body, given the words of msgspec."""
        match = _AT.fullmatch(error)
        text, path = (error, "") if match is None else (match["text"], match["path"] or "")
        if (named := _NAMED.fullmatch(text)) is not None:
            path = f"{path}.{named[1]}".removeprefix(".")
            text += f": known are {self._known}"
            if named[1] == EXPLORE and not self._explores:
                text += ", and explore where serve.explore of the follower says how"
        return RequestError(INVALID, text, path or None)

    def _checked(self, found: Any) -> ScoreRequest:
        items = [] if found.items is UNSET else found.items
        if not items:
            raise RequestError(INVALID, "there are no candidates: items is a list of at least one", "items")
        if len(items) > self.max_candidates:
            raise RequestError(INVALID, self._too_many(len(items), "candidates"), "items")
        now = time.time_ns() // 1_000_000
        at = now if found.time is UNSET else found.time
        if at > now + self._max_ahead:
            raise RequestError(INVALID, f"{at} lies in the future: times are milliseconds since 1970", "time")
        columns = {name: _column(leaf, found, items) for name, leaf in self._leaves.items()}
        wanted = [columns[name] for name in self._wanted]
        candidates = [*map(self._make, repeat(at, len(items)), *wanted)]
        event_id = self._event_to_explore(found, items)
        return ScoreRequest(set(columns[self._key]), candidates, at, found.explain, event_id)

    def _event_to_explore(self, found: Any, items: Sequence[Any]) -> Id | None:
        """Return the event for which a candidate is to be drawn; None where none is."""
        if not (self._explores and found.explore):
            return None
        assert self._event_id is not None
        event_ids = set(_column(self._event_id, found, items))
        if len(event_ids) > 1 or None in event_ids:
            text = "a candidate is drawn by the id of the event in which it is shown: explore needs one id"
            raise RequestError(INVALID, text, self._event_id.path)
        event_id: Id = event_ids.pop()
        return event_id

    def _too_many(self, count: int, what: str) -> str:
        return (
            f"{count:,} {what} are more than {self.max_candidates:,}: send several requests, or raise "
            "serve.max_candidates of the follower"
        )


def _column(leaf: _Leaf, request: Any, items: Sequence[Any]) -> list[Any]:
    """Return a field of all candidates."""
    column = [*map(leaf.of_item, items)]
    if UNSET not in column:
        return column
    beside = leaf.beside(request)
    if beside is UNSET and not leaf.optional:
        number = next(number for number, value in enumerate(column) if value is UNSET)
        raise RequestError(
            INVALID,
            f"{leaf.path} is neither in the item nor beside the items",
            f"items[{number}].{leaf.path}",
        )
    other = None if beside is UNSET else beside
    return [other if value is UNSET else value for value in column]


def _request_type(
    name: str, around: dict[str, Any], item: type[msgspec.Struct], more: Sequence[Any]
) -> type[msgspec.Struct]:
    """Return the type of a request, with these fields of the stream beside its items, and some more."""
    own: list[Any] = [
        ("items", list[item] | UnsetType, UNSET),  # type: ignore[valid-type]  # made just now
        ("time", Timestamp | UnsetType, UNSET),
        ("explain", bool, False),
        *more,
    ]
    return _node(name, around, own)


def _node(name: str, tree: dict[str, Any], own: Sequence[Any] = ()) -> type[msgspec.Struct]:
    """Return the type of an object with these fields, all of which may be absent.

    Fields that are not known are ignored, as in messages, but where there are fields of a request.
    """
    fields: list[Any] = []
    for number, (part, entry) in enumerate(tree.items()):
        kind = _node(f"{name}_{part}", entry) if isinstance(entry, dict) else entry.type
        fields.append((f"f{number}", kind | UnsetType, UNSET))
    return msgspec.defstruct(
        name,
        [*fields, *own],
        rename={f"f{number}": part for number, part in enumerate(tree)},
        frozen=True,
        kw_only=True,
        gc=False,
        forbid_unknown_fields=bool(own),
    )


def _getter(tree: dict[str, Any], parts: Sequence[str]) -> _Getter:
    """Return what finds a field in an object of `_node`."""
    names = []
    for part in parts:
        if part not in tree:  # a field of the request has its name
            return lambda _: UNSET
        names.append(f"f{[*tree].index(part)}")
        tree = tree[part]
    if len(names) == 1:
        return attrgetter(names[0])

    def walk(node: Any) -> Any:
        for name in names:
            if node is UNSET:
                return UNSET
            node = getattr(node, name)
        return node

    return walk

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from pipeline.config.loader import read_definition
from pipeline.config.settings import Join, Serve
from pipeline.config.stream import KUAIREC, Stream
from pipeline.serving.scoring_requests import RequestDecoder
from pipeline.sources.kuairec import read_events
from pipeline.sources.rows import read_rows
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size
from pipeline.tools.demo import DemoData, DemoFollower, example_request
from tests.pipeline.sources.test_slates import DEFINITION, read, row

SIZE = Size(events=300, users=20, videos=15, days=2)


@pytest.mark.parametrize("name", ["kuairec", "deliveries"])
def test_the_example_is_a_request_of_the_stream(tmp_path: Path, name: str) -> None:
    if name == "kuairec":
        write_files(tmp_path, SIZE)
        data = DemoData(read_events(tmp_path), KUAIREC, {})
    else:
        write_files(tmp_path, SIZE, stream="deliveries")
        stream = read_definition(tmp_path / "deliveries.toml")
        data = DemoData(read_rows(tmp_path / "deliveries.jsonl", stream, 0), stream, {})
    found = RequestDecoder(data.stream, Serve(), Join()).decode(example_request(data))
    assert len(found.candidates) == 3
    assert found.time == data.events.frame["timestamp"][-1]


def test_the_example_of_slates_has_the_first_items_of_the_last_slate(tmp_path: Path) -> None:
    rows = [row(n // 4, 1_000 * (n // 4), n, price=n / 2) for n in range(12)]
    interactions = DEFINITION["interactions"] | {"max_items": 4}
    stream = Stream.model_validate(DEFINITION | {"interactions": interactions})
    data = DemoData(read(tmp_path, rows, stream), stream, {})
    assert (data.messages, len(data.events)) == (3 + 12, 12)
    request = json.loads(example_request(data))
    assert request == {
        "who": {"user": "u2"},
        "phone": True,
        "items": [{"product": {"id": n}, "price": n / 2, "vector": [0.5, 1.0]} for n in (8, 9, 10)],
        "time": 2_000,
    }
    found = RequestDecoder(stream, Serve(), Join()).decode(example_request(data))
    assert [each.ids for each in found.candidates] == [("u2", 8), ("u2", 9), ("u2", 10)]


def test_the_line_is_for_a_shell(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    follower = DemoFollower(process, "http://a", b'{"user": "O\'Neill $HOME"}', tmp_path)
    assert shlex.split(follower.curl_line)[-1] == '{"user": "O\'Neill $HOME"}'

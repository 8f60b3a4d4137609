"""Tests of formats of times, against those of Python."""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.times import DIRECTIVES, TimeFormat, TimeSettings

EPOCH = datetime(1970, 1, 1)
FORMATS = [
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S %z",
    "%B %d, %Y %I:%M %p",
    "%a %d %b %y %I:%M:%S.%f %p",
    "%A, %Y%m%dT%H%M%S",
    "%y%m%d%H",
    "%Y-%m-%d 100%%",
]
times = st.datetimes(datetime(1970, 1, 2), datetime(2068, 12, 30))


@given(st.sampled_from(FORMATS), times)
def test_what_python_writes_is_read_as_python_reads_it(text: str, time: datetime) -> None:
    written = time.strftime(text.replace("%z", "+0530"))
    expected = datetime.strptime(written, text).replace(tzinfo=None)
    milliseconds, offset = TimeFormat(text).parse(written)
    assert milliseconds == (expected - EPOCH) // timedelta(milliseconds=1)
    assert offset == (330 if "%z" in text else None)


@given(st.sampled_from(FORMATS), times, st.integers(-1439, 1439))
def test_times_are_written_as_python_writes_them(text: str, time: datetime, offset: int) -> None:
    time = time.replace(microsecond=time.microsecond // 1000 * 1000)
    milliseconds = (time - EPOCH) // timedelta(milliseconds=1)
    sign, minutes = "-" if offset < 0 else "+", abs(offset)
    zone = f"{sign}{minutes // 60:02}{minutes % 60:02}"
    expected = (time + timedelta(minutes=offset)).strftime(text.replace("%z", zone))
    written = TimeFormat(text).write(milliseconds, offset)
    assert written == expected
    assert TimeFormat(text).parse(written).offset == (offset if "%z" in text else None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%m/%d/%Y", "2/30/2025"),
        ("%m/%d/%Y", "13/1/2025"),
        ("%m/%d/%Y", "1/1/2025 "),
        ("%m/%d/%Y", "1/1/25"),
        ("%m/%d/%Y %I:%M %p", "1/1/2025 13:05 PM"),
        ("%m/%d/%Y %H:%M", "1/1/2025 24:00"),
        ("%m/%d/%Y %H:%M %z", "1/1/2025 12:00 +25:00"),
        ("%y%m%d", "2501015"),
        ("%Y", "2025"),
        ("%Y %m %d %Q", "2025"),
        ("%Y %m %d %", "2025"),
        ("%Y %y %m %d", "2025"),
        ("%Y %m %m %d", "2025"),
        ("%Y %m %d %I", "2025"),
        ("%Y %m %d %H %I %p", "2025"),
    ],
)
def test_other_times_and_formats_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"is|says|no|once|day|month"):
        TimeFormat(text).parse(said)


def test_each_directive_can_be_read() -> None:
    used = {each for text in FORMATS for each in re.findall("%([a-zA-Z])", text)}
    assert used == set(DIRECTIVES)


@pytest.mark.parametrize(
    ("text", "offset"), [("%d.%m.%Y", None), ("%d.%m.%Y %z", "+01:00"), ("%d.%m.%Y %z", "+1")]
)
def test_the_zone_is_said_once(text: str, offset: str | None) -> None:
    with pytest.raises(ValueError, match=r"zone|offset"):
        TimeSettings.model_validate({"time_unit": "text", "time_format": text, "utc_offset": offset})

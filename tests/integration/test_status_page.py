"""The status page of a real worker with events flowing, in a real browser."""

from __future__ import annotations

import json
import math
import os
import re
import time
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import polars as pl
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from typer.testing import CliRunner

from pipeline.cli import app
from tests.integration.harness import Message, Pipeline, interactions_of, invented_events, until
from tests.integration.live_feed import live_feed
from tests.integration.scrapes import ANSWER_TIMEOUT, probe
from tests.support.chromium import chromium, needs_chromium

PANELS = ("throughput", "quality", "lag", "latency", "joins", "partitions", "predictions")
CHARTS = {"throughput": 1, "quality": 1, "lag": 2, "latency": 1}
"""Charts by panel."""
SIZES = {"wide": (1440, 900), "narrow": (360, 740)}
SAMPLES = 4
"""Samples in a curve, at least."""
PICTURES = "FORKS_SCREENSHOTS"
"""Names the folder for the pictures; `make screenshots` sets it."""
DOCUMENTED = {("wide", "light"), ("narrow", "dark")}
"""The pictures that are in the documentation."""
SAMPLES_IN_PICTURES = 15
COLOURS = 128
"""Colours of a picture."""
HOSTILE = '<img src="x" onerror="document.title=1"><script>document.title=1</script>'
"""An event's id."""
REFRESH = 2_500.0
"""Milliseconds in which a page shows what is new."""
MINUS, ABSENT = "\N{MINUS SIGN}", "\N{EN DASH}"
BROWSER_TIMEOUT = 60_000.0
"""Milliseconds for what a page is to show, on a busy machine."""
CLIPPED = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def ask(address: str, path: str) -> dict[str, Any]:
    with urlopen(f"http://{address}{path}", timeout=ANSWER_TIMEOUT) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def opened(browser: Browser, address: str, size: str, scheme: Any, complaints: list[str]) -> Page:
    """The page in a window of this size; what the browser complains about is noted."""
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.set_default_timeout(BROWSER_TIMEOUT)
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"{request.url}: {request.failure}"))
    page.on("request", lambda request: None if address in request.url else complaints.append(request.url))
    page.goto(f"http://{address}/")
    expect(page.locator("#predictions tbody tr").first).to_be_visible(timeout=BROWSER_TIMEOUT)
    expect(page.locator("#throughput .chart path").first).to_be_attached(timeout=BROWSER_TIMEOUT)
    return page


def take_picture(page: Page, path: Path) -> None:
    """A picture of the whole page if it is wide, in few colours, so that it is small."""
    width, height = SIZES["wide"]
    shown = page.screenshot(full_page=page.viewport_size == {"width": width, "height": height})
    Image.open(BytesIO(shown)).quantize(COLOURS).save(path, optimize=True)


def check_panels(page: Page) -> None:
    """Every panel has numbers, and every chart curves, an axis with numbers and a legend."""
    for panel in PANELS:
        section = page.locator(f"#{panel}")
        assert section.locator(".empty").count() == 0, panel
        for table in section.locator("table").all():
            assert table.locator("thead th[scope=col]").count() > 1, panel
            cells = table.locator("tbody td").all_inner_texts()
            assert sum(bool(re.search(r"\d", cell)) for cell in cells) >= len(cells) / 2, (panel, cells)
        charts = section.locator(".chart").all()
        assert len(charts) == CHARTS.get(panel, 0)
        for chart in charts:
            curves = chart.locator("svg[role=img] path.series")
            assert curves.count() == chart.locator(".legend li").count() > 0
            assert any("L" in (curve.get_attribute("d") or "") for curve in curves.all()), panel
            axis = chart.locator("svg[role=img] text").all_text_contents()
            assert sum(bool(re.search(r"\d", text)) for text in axis) >= 4, panel
    lines = page.locator("#quality path.series")
    assert len({line.get_attribute("stroke-dasharray") for line in lines.all()}) == lines.count() // 2


def check_terms(page: Page) -> None:
    """The terms of each row come to its score, as far as they are rounded."""
    heads = page.locator("#predictions thead th").all_inner_texts()
    begin = heads.index("score")
    assert {"user", "video", "bias", "kernel"} <= set(heads[begin:])
    for row in page.locator("#predictions tbody tr").all():
        cells = row.locator("th, td").all_inner_texts()[begin:]
        score, *terms = (float(cell.replace(MINUS, "-")) for cell in cells if cell != ABSENT)
        assert score == pytest.approx(sum(terms), abs=5e-5 * (len(terms) + 1))


def check_keyboard(page: Page) -> None:
    """Each control and each region that scrolls is reached by Tab, and shows that it has the focus."""
    regions = page.locator(".scroll").count()
    reached = []
    for _ in range(2 + regions):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => {
                  const at = document.activeElement;
                  return [at.getAttribute("aria-label") ?? at.textContent, getComputedStyle(at).outlineStyle];
                }"""
            )
        )
    assert [name for name, _ in reached[:2]] == ["Skip to the panels", "Pause"]
    assert len({name for name, _ in reached}) == 2 + regions
    assert {style for _, style in reached} == {"solid"}
    page.locator("#pause").focus()
    page.keyboard.press("Space")
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Space")
    assert page.locator("#pause").get_attribute("aria-pressed") == "false"
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panels"


def check_policy(address: str) -> None:
    """Nothing but the page's own script and style may run, and nothing is fetched from elsewhere."""
    with urlopen(f"http://{address}/", timeout=ANSWER_TIMEOUT) as answer:
        headers, text = answer.headers, answer.read().decode()
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/]+='", policy["script-src"])
    assert re.fullmatch(r"'sha256-[\w+/]+='", policy["style-src"])
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("HTTP ", "")
    assert "innerHTML" not in text


@needs_chromium
@pytest.mark.slow
def test_every_panel_shows_numbers_while_events_flow(
    bootstrap: str, topic_prefix: str, tmp_path: Path, free_port: int
) -> None:
    pipeline, address = Pipeline(bootstrap, topic_prefix, tmp_path, partitions=2), f"127.0.0.1:{free_port}"
    pipeline.environment = {
        "FORKS_METRICS__ADDRESS": address,
        "FORKS_CHALLENGERS": json.dumps({"linear": {"learner": "arow"}}),
        "FORKS_JOIN__WINDOW": "5s",
        "FORKS_JOIN__EARLY": "2s",
    }
    pictures = os.environ.get(PICTURES)
    samples = SAMPLES_IN_PICTURES if pictures else SAMPLES
    events, complaints = invented_events(tmp_path, 40_000), list[str]()

    def spoil(number: int) -> list[Message]:
        return [] if number % 50 else [Message(pipeline.topics.interactions, b"1", b"{")]

    def complete() -> bool:
        status, history = ask(address, "/v1/status"), ask(address, "/v1/history")
        return (
            status["quality"]["events"] > 0
            and all(status["joins"]["outcomes"][each] for each in ("labelled", "expired"))
            and bool(status["predictions"] and status["joins"]["dead_letters"])
            and len(history["time"]) >= samples
            and all(sum(each is not None for each in values) > 2 for values in history["error"].values())
        )

    with pipeline.worker() as worker, chromium() as browser:
        with live_feed(pipeline, events, 40, spoil):
            until(lambda: probe(address)[0] == 200, "its partitions", worker)
            until(complete, "something to show in every panel", worker)
            for scheme in ("light", "dark"):
                for size in SIZES:
                    page = opened(browser, address, size, scheme, complaints)
                    check_panels(page)
                    assert page.evaluate(CLIPPED) <= 0, size
                    folder = Path(pictures) if pictures and (size, scheme) in DOCUMENTED else tmp_path
                    take_picture(page, folder / f"status-page-{size}-{scheme}.png")
                    page.close()
            page = opened(browser, address, "wide", "light", complaints)
            check_terms(page)
            check_keyboard(page)
        shown, sent = page.locator("#predictions tbody th").filter(has_text="<img src="), count()

        def hostile_one_shown() -> bool:  # a prediction that shares a batch with others is seldom explained
            at, name = int(time.time() * 1000), f"{next(sent)}{HOSTILE}"
            hostile = events[:1].with_columns(event_id=pl.lit(name), timestamp=pl.lit(at))
            pipeline.produce(interactions_of(pipeline.topics, hostile))
            page.wait_for_timeout(REFRESH)
            return shown.count() > 0

        until(hostile_one_shown, "a hostile event on the page", worker)
        assert page.locator("img").count() == page.locator("td script, th script").count() == 0
        assert "forks" in page.title()
        page.close()
        check_policy(address)
        explained = ask(address, "/v1/status")["predictions"]
        check_top(address)
    assert complaints == []
    written = {each["event_id"]: each for each in pipeline.read_json(pipeline.topics.predictions)}
    for each in explained:
        prediction = written[each["event_id"]]
        assert (each["score"], each["timestamp"]) == (prediction["score"], prediction["timestamp"])
        assert abs(math.fsum(term["value"] for term in each["terms"]) - each["score"]) < 1e-12
    assert any(HOSTILE in each["event_id"] for each in explained)


def check_top(address: str) -> None:
    """`forks top` shows the same."""
    shown = CliRunner().invoke(app, ["top", address, "--once"], env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    for text in ("ready", "running means", "linear", "labelled", "Partitions", "+ kernel"):
        assert text in shown.output
    printed = CliRunner().invoke(app, ["top", address, "--json"])
    assert json.loads(printed.output)["worker"]["worker"] == "worker"

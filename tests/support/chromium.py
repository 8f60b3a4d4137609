"""A headless Chromium, where one is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium: Debian's package chromium has it"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, until the end of the block."""
    with sync_playwright() as playwright:
        # A sandbox is not to be had by root; the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()

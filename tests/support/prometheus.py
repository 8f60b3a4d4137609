"""Prometheus and its tool, where they are installed."""

from __future__ import annotations

import shutil

import pytest

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None or shutil.which("prometheus") is None,
    reason="needs prometheus and promtool: Debian's package prometheus has them",
)

"""The status page: one file, which a browser may take no script or style from but its own."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple, Self

_FILE: Final = "status_page.html"


class StatusPage(NamedTuple):
    """The page, and the headers that it is sent with."""

    html: bytes
    headers: Mapping[str, str]

    @classmethod
    def load(cls) -> Self:
        """Read the page, and allow what it contains by its hash: nothing else runs in it, or is fetched."""
        text = files(__package__).joinpath(_FILE).read_text("utf-8")
        policy = (
            "default-src 'none'",
            f"script-src {_hashes('script', text)}",
            f"style-src {_hashes('style', text)}",
            "connect-src 'self'",
            "img-src data:",  # an empty icon, so that none is asked for
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
        headers = {
            "content-security-policy": "; ".join(policy),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
        }
        return cls(text.encode(), headers)


def _hashes(element: str, text: str) -> str:
    found = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
    return " ".join(f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in found)

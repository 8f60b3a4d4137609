"""Bounds on what has to be read: lines of a source file, and words of the documentation.

``python -m ops.size`` prints what is too large, and exits with 1 if something is.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
MAX_LINES: Final = 500
LONGER: Final[Mapping[str, int]] = {
    "pipeline/records/input_decoders.py": 530,  # slates could go, but share most helpers with single events
    "tests/ops/test_kubernetes.py": 589,  # workers and followers, by the same helpers for manifests
    "tests/pipeline/serving/test_application.py": 557,  # short tests of two operations, on one set of clients
}
"""Files that may be longer, and why."""
MAX_WORDS: Final = 40_000
PAGES: Final = ("*.md", "docs/**/*.md")
"""The documentation. Results that a command writes beside the code are not part of it."""


def main() -> None:
    """Check all files of the repository."""
    found = [*too_long(ROOT, tracked(ROOT)), *too_wordy(ROOT)]
    for line in found:
        print(line, file=sys.stderr)
    sys.exit(bool(found))


def tracked(root: Path) -> list[str]:
    """Return the source files of a repository."""
    command = ["git", "ls-files", "*.py", "*.java", "*.html"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()


def too_long(root: Path, files: list[str]) -> Iterator[str]:
    """Yield a line for each file with too many lines, and for each exception that is not needed."""
    lines = {name: (root / name).read_text().count("\n") for name in files}
    for name, count in lines.items():
        most = LONGER.get(name, MAX_LINES)
        if count > most:
            yield f"{name} has {count} lines, at most {most} are allowed: split it by concept"
    for name in LONGER:
        if lines.get(name, 0) <= MAX_LINES:
            yield f"{name} needs no exception in ops/size.py"


def too_wordy(root: Path) -> Iterator[str]:
    """Yield a line if the documentation has too many words."""
    words = sum(len(page.read_text().split()) for pattern in PAGES for page in root.glob(pattern))
    if words > MAX_WORDS:
        yield f"the documentation has {words:,} words, at most {MAX_WORDS:,} are allowed: {', '.join(PAGES)}"


if __name__ == "__main__":
    main()

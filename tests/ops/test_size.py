from __future__ import annotations

from pathlib import Path

import pytest

from ops import size


def test_a_long_file_and_an_exception_that_is_not_needed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size, "LONGER", {"known.py": 600, "short.py": 600})
    for name, lines in {"long.py": 501, "known.py": 600, "short.py": 500}.items():
        (tmp_path / name).write_text("\n" * lines)
    assert [*size.too_long(tmp_path, ["long.py", "known.py", "short.py"])] == [
        "long.py has 501 lines, at most 500 are allowed: split it by concept",
        "short.py needs no exception in ops/size.py",
    ]


def test_words_of_pages_in_all_folders_count(tmp_path: Path) -> None:
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "README.md").write_text("word " * 20_000)
    (tmp_path / "docs" / "index.md").write_text("word " * 10_000)
    page = tmp_path / "docs" / "reference" / "names.md"
    page.write_text("word " * 10_000)
    assert not [*size.too_wordy(tmp_path)]
    page.write_text("word " * 10_001)
    [line] = size.too_wordy(tmp_path)
    assert "40,001 words" in line

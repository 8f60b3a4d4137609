"""The names of KuaiRec's files."""

from __future__ import annotations

from typing import Final

DEFAULT_MATRIX: Final = "small_matrix.csv"
"""The interactions that are read from a folder."""
TABLES: Final = {
    "users": "user_features.csv",
    "tags": "item_categories.csv",
    "daily": "item_daily_features.csv",
}
"""The tables, by the setting of `features` that takes their path."""

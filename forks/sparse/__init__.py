"""The sparse part: a weight and a variance for each category, word and pair of categories, found by hash.

What most streams are made of are categories of many values: site, advert, device, hour, merchant. A column
for each value would make a dense learner quadratic in their number. Here an event costs as much as it has
values.
"""

from __future__ import annotations

from forks.sparse.hashing import category
from forks.sparse.part import SparsePart
from forks.sparse.plan import Columns
from forks.sparse.settings import SparseSettings
from forks.sparse.text import word, word_hashes, words_of

__all__ = ["Columns", "SparsePart", "SparseSettings", "category", "word", "word_hashes", "words_of"]

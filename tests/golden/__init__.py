"""Golden digests: SHA-256 of all that fixed replays write. A change of one bit changes a digest.

`digests.json` has the digests. A change on purpose records them again with `python -m tests.golden --record`,
and says so in its commit message and in CHANGELOG.md.
"""

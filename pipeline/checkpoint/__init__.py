"""What the group continues from: looked at, taken out to a file, and put back."""

from pipeline.checkpoint.contents import Contents, contents
from pipeline.checkpoint.group import Group, Saved
from pipeline.checkpoint.importing import import_snapshot
from pipeline.checkpoint.listing import Checkpoint, listed
from pipeline.checkpoint.render import render_contents, render_list

__all__ = [
    "Checkpoint",
    "Contents",
    "Group",
    "Saved",
    "contents",
    "import_snapshot",
    "listed",
    "render_contents",
    "render_list",
]

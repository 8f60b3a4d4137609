"""What the group continues from: looked at, taken out to a file, and put back."""

from pipeline.tools.checkpoint.contents import Contents, contents
from pipeline.tools.checkpoint.group import Group, Saved
from pipeline.tools.checkpoint.importing import import_snapshot
from pipeline.tools.checkpoint.listing import Checkpoint, listed
from pipeline.tools.checkpoint.render import render_contents, render_list

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

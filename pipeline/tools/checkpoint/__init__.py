"""List, show, export, import, recover and sign the checkpoints that a group continues from."""

from pipeline.tools.checkpoint.checkpoint_text import render_contents, render_list
from pipeline.tools.checkpoint.contents import Contents, contents
from pipeline.tools.checkpoint.group import CommittedState, Group
from pipeline.tools.checkpoint.importing import import_snapshot
from pipeline.tools.checkpoint.listing import Checkpoint, read_checkpoint
from pipeline.tools.checkpoint.recovering import Recovered, recover
from pipeline.tools.checkpoint.signing import sign

__all__ = [
    "Checkpoint",
    "CommittedState",
    "Contents",
    "Group",
    "Recovered",
    "contents",
    "import_snapshot",
    "read_checkpoint",
    "recover",
    "render_contents",
    "render_list",
    "sign",
]

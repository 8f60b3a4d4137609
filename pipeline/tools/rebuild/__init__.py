"""A group's outcomes learned under other settings, each event predicted as it would have been."""

from pipeline.tools.rebuild.comparison import Comparison, PartitionRebuild, compare
from pipeline.tools.rebuild.rebuilding import Rebuild
from pipeline.tools.rebuild.render import render

__all__ = ["Comparison", "PartitionRebuild", "Rebuild", "compare", "render"]

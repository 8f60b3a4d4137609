"""Learn the outcomes of a group again under other settings, and compare the predictions."""

from pipeline.tools.rebuild.comparison import Comparison, PartitionRebuild, compare
from pipeline.tools.rebuild.rebuilding import Rebuild
from pipeline.tools.rebuild.render import render

__all__ = ["Comparison", "PartitionRebuild", "Rebuild", "compare", "render"]

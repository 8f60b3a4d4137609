"""Learn the outcomes of a group again under other settings, and compare the predictions."""

from pipeline.tools.rebuild.comparison import Comparison, PartitionRebuild, compare
from pipeline.tools.rebuild.comparison_text import render
from pipeline.tools.rebuild.rebuilding import Rebuild

__all__ = ["Comparison", "PartitionRebuild", "Rebuild", "compare", "render"]

"""Look at the messages of a stream, and say what fits its definition and what does not."""

from pipeline.tools.stream.checking import InputCheck, Sample, StreamCheck, check
from pipeline.tools.stream.render import render

__all__ = ["InputCheck", "Sample", "StreamCheck", "check", "render"]

"""Look at the messages of a stream, say what fits its definition, and describe its outputs."""

from pipeline.tools.stream.check_text import render
from pipeline.tools.stream.checking import InputCheck, Sample, StreamCheck, check
from pipeline.tools.stream.schemas import schemas_of

__all__ = ["InputCheck", "Sample", "StreamCheck", "check", "render", "schemas_of"]

"""What commands of `forks` import, for the process that is forked for each of them."""

# ruff: noqa: F401 - imported for those that are forked

import gc

import pipeline.cli.progress
import pipeline.config.loader
import pipeline.sources.replay
import pipeline.tools.audit
import pipeline.tools.checkpoint
import pipeline.tools.inspect.reading
import pipeline.tools.inspect.text
import pipeline.tools.rebuild
import pipeline.tools.report
import pipeline.worker.worker

gc.collect()
gc.freeze()

"""What commands of `forks` import and load, for the process that is forked for each of them."""

# ruff: noqa: F401 - imported for those that are forked

import gc

import pipeline.config.loader
import pipeline.sources.replay
import pipeline.tools.audit
import pipeline.tools.checkpoint
import pipeline.tools.inspect.reading
import pipeline.tools.inspect.record_text
import pipeline.tools.rebuild
import pipeline.tools.report
import pipeline.tools.terminal
import pipeline.worker.worker
from pipeline.config.settings import Config
from pipeline.model.factory import ModelFactory
from pipeline.worker.warm_up import warm_up

warm_up(ModelFactory(Config()))  # else each worker would load the compiled code for half a second
gc.collect()
gc.freeze()

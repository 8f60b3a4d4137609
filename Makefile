.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
MINUTES ?= 10
PROCESSES ?= 4
# Where this is set, as in many images, each of hundreds of processes would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=

help:  ## What can be made here
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 15

setup: .venv/.done  ## A virtual environment in .venv with everything at its locked version

.venv/.done: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
	  { echo "Python 3.11 to 3.14 is needed; name one with: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@test ! -L .venv || { echo ".venv is a link, and what it leads to would be emptied: remove the link" >&2; exit 1; }
	@echo "Setting up .venv (a minute or two on the first run) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@echo "Compiling the loops of the learner (half a minute on the first run) ..."
	@$(BIN)/python -m pipeline.worker.warm_up
	@touch $@

demo: setup  ## Broker, data, worker, a kill -9 in the middle, and the report
	@$(BIN)/forks demo

# One process runs all tests that share a cluster; the others one at a time, so that none waits behind a long one.
test: setup  ## All tests, with a real Apache Kafka
	@$(BIN)/pytest -n $(PROCESSES) --dist loadgroup

test-machines: setup  ## The tests in other systems, with other libraries, for other processors; ONLY="trixie generic" chooses; as root
	@$(BIN)/python -m tests.machines $(if $(ONLY),--only $(ONLY))

test-fast: setup  ## The tests that need no broker and are not slow, with a share of the examples of each property
	@$(BIN)/pytest -n logical -m "not kafka and not chaos and not slow" --hypothesis-profile quick

coverage: setup  ## The share of lines, in percent, that the tests without a broker run
	@$(BIN)/pytest -n logical -m "not kafka and not chaos" --cov --cov-report=
	@echo "coverage: $$($(BIN)/coverage report --format=total)% of the lines"

chaos: setup  ## Kills of workers and broker for MINUTES=10, then the check; SEED=... repeats one, OPTIONS=--replay or --cluster
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(OPTIONS)

fuzz: setup  ## Changed messages, files, state records and snapshots, MINUTES=10 of each; SEED=... repeats one
	@$(BIN)/python -m tests.fuzz all --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

screenshots: setup  ## Pictures of the status page, in docs/images/; needs chromium
	@FORKS_SCREENSHOTS=$(CURDIR)/docs/images $(BIN)/pytest -q tests/integration/test_status_page.py

check: setup  ## Lint, format, types, order of imports, docstrings, sizes of files and docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/numpydoc lint --config . $$(git ls-files 'forks/*.py' 'pipeline/*.py' 'research/*.py' 'ops/*.py')
	@$(BIN)/mypy
	@$(BIN)/python -m ops.size

# Not with --quiet: --strict counts no warning that is not shown.
docs: setup  ## The documentation site, in site/; its warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

COMPILE := .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  --no-annotate --no-emit-index-url --no-strip-extras

lock:  ## Resolve requirements.lock, and those of the peers in bench, anew
	@$(PYTHON) -m venv --clear .venv/lock
	@.venv/lock/bin/python -m pip install --quiet uv
	@$(COMPILE) --group dev --all-extras pyproject.toml -o requirements.lock
	@$(COMPILE) bench/peers/requirements.in -o bench/peers/requirements.lock
	@$(COMPILE) bench/peers/vowpal.in -o bench/peers/vowpal.lock

.PHONY: help setup demo test test-machines test-fast coverage chaos fuzz screenshots check docs lock

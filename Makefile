# Each target does its own set-up on a fresh clone. All it takes is Python 3.11 or newer, with pip.
#
#   make demo     the whole method on a bank it makes itself
#   make test     the tests
#   make check    style and types
#   make          check, then test
#
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: all setup vectors check test demo clean

all: check test

setup: $(VENV)/tools vectors

# The stamps $(VENV)/package and $(VENV)/tools say what is installed; a change of pyproject.toml makes them stale.
$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("manymetrics needs Python 3.11 or newer, and $(PYTHON) is %s. Try: make PYTHON=python3.11" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/package: $(VENV)/made pyproject.toml
	$(PIP) install -q -e ".[train]"
	@touch $@

# Dependency groups (PEP 735) are known to pip from 25.1 on.
$(VENV)/tools: $(VENV)/package pyproject.toml
	$(PIP) install -q "pip>=25.1"
	$(PIP) install -q --group dev
	@touch $@

# Kept in the user's cache, for all projects; does nothing when they are there.
vectors: $(VENV)/package
	@$(BIN)/manymetrics vectors get wordllama >/dev/null

check: $(VENV)/tools
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: setup
	$(BIN)/pytest -n 2

demo: vectors
	$(BIN)/manymetrics demo

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

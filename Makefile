# Everything from a bare Python 3.11:
#
#   make demo     install, train on a simulated scalar series, draw the recovered state space
#   make test     install, lint, type-check, run the tests
#   make bench    install, run the quick benchmark (half an hour on two cores), write docs/benchmarks/quick.md
#
# All build .venv first, once; `make setup` does only that. No environment variable is needed.

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= 2
SYSTEM  ?= lorenz
BENCH   ?= bench-quick

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo bench test lint format pytest constraints clean

help:
	@sed -n '3,7s/^#   //p' $(MAKEFILE_LIST)

setup: $(STAMP)

# The build backend comes first and without isolation, so that it is pinned like everything else.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "lamperti needs Python 3.11 or newer; found '$(PYTHON)' ($$($(PYTHON) --version 2>&1))." >&2; \
	  echo "Install one and run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/lamperti demo $(SYSTEM)

# What is in $(BENCH) already is not run again: remove the folder to start afresh.
bench: $(STAMP)
	$(BIN)/lamperti bench run --suite quick --out $(BENCH)
	$(BIN)/lamperti bench report $(BENCH) --docs docs/benchmarks/quick

test: lint pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright src

# Whole files go to a worker, so that tests which share compiled programs also share the process that has them.
# Compiling is mostly serial: two workers use two cores well, and more would only take memory.
pytest: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Pins of the present environment: names and versions only.
constraints: $(STAMP)
	{ sed -n '/^#/p' constraints.txt; \
	  $(BIN)/python -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9_.-]+=='; } > constraints.new
	mv constraints.new constraints.txt
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis

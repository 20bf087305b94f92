# Countersign. `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Each process has servers of its own; a file's tests stay together in one.
SIDE_BY_SIDE := -n logical --maxprocesses 4 --dist loadfile
# Set UV= to another program; it is needed for `make lock` only.
UV ?= uv

.PHONY: help install run test test-full harness versions savings bench chaos lint lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make the environment in .venv from the lock

$(STAMP): requirements.lock
	@python=; for name in $${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do \
	  "$$name" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
	    2>/dev/null && python=$$name && break; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Countersign needs Python 3.11, 3.12 or 3.13 with its venv module; none was found." >&2; \
	  echo "Name one with PYTHON=/path/to/python3.11 make install." >&2; exit 1; \
	fi; \
	[ -x $(BIN)/python ] || "$$python" -m venv $(VENV) || exit 1; \
	echo "Installing the locked packages into $(VENV); the first time takes a minute or two."; \
	$(BIN)/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps -r requirements.lock && touch $(STAMP)

run: $(STAMP) ## Start the whole product (PORT=8000); Ctrl-C ends it
	@exec $(BIN)/python -m config.launcher

test: $(STAMP) ## Run all tests, the long ones in their short form
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-full: $(STAMP) ## Run all tests, the long ones in full
	@COUNTERSIGN_FULL=1 $(BIN)/python -m pytest --timeout 1800 $(SIDE_BY_SIDE)

harness: $(STAMP) ## Play all cases and mixes on both orchestrations (ARGS="receipt --show")
	@$(BIN)/python -m agent_core.harness $(ARGS)

versions: $(STAMP) ## Run the core's tests on three generations of LangChain and LangGraph
	@$(BIN)/python -m tests.versions

savings: $(STAMP) ## Measure what stopping saves (SHORT=1: one of each class)
	@$(BIN)/python -m tests.savings $(if $(SHORT),--short) $(if $(UPDATE),--update)

bench: $(STAMP) ## Measure what deciding and a whole turn cost (ARGS="--only throughput --short")
	@$(BIN)/python -m tests.bench $(ARGS)

chaos: $(STAMP) ## Kill, stop and cut off the product at random under traffic (TURNS=2000, SEED=)
	@TURNS=$(TURNS) SEED=$(SEED) $(BIN)/python -m tests.chaos

lint: $(STAMP) ## Check style, types, layers and templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	@templates=$$(find templates */templates -name '*.html' 2>/dev/null); \
	  [ -z "$$templates" ] || { echo djade --check; $(BIN)/djade --check --target-version 5.2 $$templates; }

lock: ## Solve the dependencies anew (needs uv)
	$(UV) pip compile pyproject.toml --all-extras --universal --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header --python-version 3.11 -o requirements.lock

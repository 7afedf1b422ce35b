# Daily commands. `make` prints them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STORE ?= store

# The strict editable install links single files, so a new or removed file needs a new install.
ROOMS := $(shell find recorder ingest sql pipeline -type d -not -name __pycache__)
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --config-settings editable_mode=strict

.PHONY: help run test test-slow check docs coverage captures bench bench-recorder bench-compare bench-infer gpu-check fuzz faults clean

help: ## print these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "  make %-15s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "planewise needs Python 3.11 or newer; found $$($(PYTHON) --version). Set PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml $(ROOMS)
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(INSTALL) -e '.[test,check]'
	@touch $@

# One shipped capture is corrupted on purpose, so the nightly job ends with exit code 3 ("an input was refused").
run: $(VENV)/.installed ## run the nightly job over the shipped captures
	@$(BIN)/planewise nightly --store $(STORE) --campaign examples/campaign.json examples/captures || [ $$? -eq 3 ]

test: $(VENV)/.installed-test ## run the tests, one process a core (installs torch for the CPU)
	$(BIN)/python -m pytest -q -m "not slow" --numprocesses auto --maxprocesses 8 --dist worksteal

test-slow: $(VENV)/.installed-test ## run the tests that take more than ten seconds each
	$(BIN)/python -m pytest -q -m slow

coverage: $(VENV)/.installed-test ## run the tests and report the lines they do not reach
	$(BIN)/python -m pytest -q -m "not slow" --cov --cov-report=term-missing:skip-covered

check: $(VENV)/.installed-test ## lint, types, SQL and generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p planewise
	$(BIN)/python -m planewise.pipeline.reference docs --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

docs: $(VENV)/.installed-test ## write the generated reference pages, and the site into build/site
	$(BIN)/python -m planewise.pipeline.reference docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

captures: $(VENV)/.installed-test ## record the shipped example captures again
	$(BIN)/python examples/train_tiny.py --make-captures examples/captures

bench: $(VENV)/.installed-test ## measure against peers and floors, as ratios
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

bench-recorder: $(VENV)/.installed-test ## what recording costs, by hand and automatically
	$(BIN)/python benchmarks/recorder.py
	$(BIN)/python benchmarks/torch_record.py

bench-compare: $(VENV)/.installed-test ## how often a verdict is wrong, and what many questions cost
	$(INSTALL) -e '.[bench]'
	$(BIN)/python benchmarks/compare.py

bench-infer: $(VENV)/.installed-test ## what an append to an inference artifact costs, against stormlog
	$(INSTALL) -e '.[stormlog]'
	$(BIN)/python benchmarks/infer.py

gpu-check: $(VENV)/.installed-test ## check the recorder on a GPU (needs PyTorch with CUDA, and the extra nvml)
	$(BIN)/python benchmarks/gpu_check.py

fuzz: $(VENV)/.installed-test ## read damaged trace files until one breaks (INPUTS=..., MUTANTS=...)
	$(BIN)/python tests/fuzz.py $(INPUTS) --mutants $(or $(MUTANTS),2000)

faults: $(VENV)/.installed-test ## kill, fill and damage stores, and count what is lost or wrong (TRIES=...)
	$(BIN)/python tests/faults.py --tries $(or $(TRIES),40)

clean: ## remove the environment, the build links and the example store
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage $(STORE)

# Everything a developer runs. Needs Python 3.10 or newer and make; the rest is set up on demand.

PYTHON ?= python3
PY ?= $(PYTHON)
JOBS ?= 2
BIN := .venv/bin
PROJECTS := pyproject.toml dropin/pyproject.toml
INSTALL := -m pip install --quiet

# Read when a recipe needs it, not on every call of make.
CORE = .venv-$(shell $(PY) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-thorough check format test-core test-all bench clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: .venv/.library  ## set up the library alone and run its main job
	@$(BIN)/retain demo

test: .venv/.development  ## set up and run the suite but its longest tests, with its coverage floor
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n $(JOBS) --dist worksteal -m "not slow"
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

test-slow: .venv/.development  ## the longest tests: many kills, many histories, public data
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "slow and not thorough"

test-thorough: .venv/.development  ## what takes minutes each: every byte of a write cut off, 100,000 memories
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m thorough

check: .venv/.development  ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.development  ## put the formatting right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-core:  ## the suite but its faults, with fewer examples each, on another interpreter: make test-core PY=python3.12
	test -x $(CORE)/bin/python || $(PY) -m venv $(CORE)
	@$(MAKE) --no-print-directory $(CORE)/.core
	RETAIN_TEST_PROFILE=core $(CORE)/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" \
		--ignore tests/faults

test-all:  ## everything that continuous integration runs
	.ci/run

bench: .venv/.development  ## the benchmarks
	$(BIN)/python -m benchmarks

clean:  ## remove what the other targets made
	rm -rf .venv .venv-* .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/.library: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) -e .
	@touch $@

# Dependency groups need pip 25.1, which a new environment of an older Python does not have.
.venv/.development: $(PROJECTS) | $(BIN)/python
	$(BIN)/python $(INSTALL) --upgrade 'pip>=25.1'
	$(BIN)/python $(INSTALL) -e . -e dropin --group test --group check --group s3
	@touch .venv/.library $@

.venv-%/.core: $(PROJECTS)
	$(@D)/bin/python $(INSTALL) --upgrade 'pip>=25.1'
	$(@D)/bin/python $(INSTALL) -e . -e dropin --group test
	@touch $@

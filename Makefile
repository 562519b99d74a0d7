# Everything a developer runs. Needs Python 3.10 or newer and make; the rest is set up on demand.

PYTHON ?= python3
PY ?= $(PYTHON)
JOBS ?= 2
BIN := .venv/bin
PROJECTS := pyproject.toml dropin/pyproject.toml
INSTALL := -m pip install --quiet
UV := $(BIN)/uv pip install --quiet

# Adapters, each with the locked environment of its own framework.
LOCKS := tests/adapters/environments
ADAPTERS := $(patsubst $(LOCKS)/%.txt,%,$(wildcard $(LOCKS)/*.txt))

# Read when a recipe needs it, not on every call of make.
CORE = .venv-$(shell $(PY) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Certificates as the machine has them.
export UV_SYSTEM_CERTS := 1
# uv leaves bytecode to whoever imports first; many tests start processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-thorough check format test-core test-adapters lock-adapters
.PHONY: test-all bench clean

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

test-core:  ## the suite but faults and adapters, with fewer examples each, on another interpreter: make test-core PY=python3.12
	test -x $(CORE)/bin/python || $(PY) -m venv $(CORE)
	@$(MAKE) --no-print-directory $(CORE)/.core
	RETAIN_TEST_PROFILE=core $(CORE)/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" \
		$(addprefix --ignore=,tests/faults tests/adapters $(LEAVE))

test-adapters: .venv/.uv  ## each adapter beside its real framework, in an environment of its own
	@$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target $(ADAPTERS:%=test-adapter-%)

test-adapter-%: .venv-adapters/%/.ready
	@echo "== the adapter $*"
	@RETAIN_ADAPTER=$* .venv-adapters/$*/bin/python -m pytest -q -o filterwarnings=ignore \
		tests/adapters/test_$*.py tests/adapters/test_each.py

lock-adapters: .venv/.uv  ## take the newest versions of all frameworks into the locks
	for name in $(ADAPTERS); do $(BIN)/uv pip compile --quiet --universal --upgrade \
		--python-version 3.11 pyproject.toml $(LOCKS)/$$name.in --output-file $(LOCKS)/$$name.txt || exit 1; done

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

# uv, since it installs a hundred packages in seconds.
.venv/.uv: | $(BIN)/python
	$(BIN)/python $(INSTALL) 'uv>=0.13'
	@touch $@

.venv/.development: $(PROJECTS) .venv/.uv
	$(UV) --python $(BIN)/python -e . -e dropin --group test --group check --group s3
	@touch .venv/.library $@

.PRECIOUS: .venv-adapters/%/.ready
.venv-adapters/%/.ready: $(LOCKS)/%.txt pyproject.toml .venv/.uv
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-adapters/$*
	@$(UV) --python .venv-adapters/$*/bin/python --no-deps -r $< -e .
	@touch $@

.venv-%/.core: $(PROJECTS) .venv/.uv
	$(UV) --python $(@D)/bin/python -e . -e dropin --group test
	@touch $@

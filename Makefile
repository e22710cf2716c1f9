# `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help demo test lint fix check clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */|/' | awk -F'|' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: .venv/.installed  ## embed the example sentences and compare a word's contexts
	@$(BIN)/python examples/demo.py

test: .venv/.installed-dev  ## run all tests
	$(BIN)/python -m pytest -q

lint: .venv/.installed-dev  ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fix: .venv/.installed-dev  ## put format and simple style mistakes right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test  ## all that must be green before a change is handed over

clean:  ## remove what was made here
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The stamps make a second run take seconds; a changed pyproject.toml installs anew.
.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("elmore needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "installing elmore into .venv (a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.installed-dev: .venv/.installed
	@echo "installing what the tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

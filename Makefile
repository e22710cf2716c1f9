# `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help demo test quick docs test-sdist test-integrations test-cluster browser test-browser page test-page tiny-model sanitize lint fix check clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */|/' | awk -F'|' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: .venv/.installed  ## embed example sentences and compare uses of a word
	@$(BIN)/python examples/demo.py

test: .venv/.installed-dev  ## run all tests
	$(BIN)/python -m pytest -q

test-sdist: .venv/.installed-dev  ## build the packages and run the quick tests against them (minutes)
	$(BIN)/python -m tests.packages

test-integrations:  ## test libraries that need environments of their own (gigabytes, minutes)
	$(PYTHON) scripts/test_integrations.py

test-cluster:  ## test Ray, Spark, datasets, Dask, S3 and GCS, without a network (gigabytes, minutes)
	$(PYTHON) scripts/test_integrations.py cluster

PAGE := examples/browser
NPM := build/npm
browser: .venv/.installed  ## ELMo in a web page: build it, and serve it at http://127.0.0.1:8000
	@mkdir -p $(NPM) && cp $(PAGE)/package.json $(NPM)
	npm install --prefix $(NPM) --omit=dev --no-audit --no-fund
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[onnx]'
	$(BIN)/python $(PAGE)/build.py --out build/browser
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory build/browser

test-browser: .venv/.installed-dev  ## test the web page in headless Chromium (needs npm and chromium)
	@mkdir -p $(NPM) && cp $(PAGE)/package.json $(NPM)
	npm install --prefix $(NPM) --no-audit --no-fund
	$(BIN)/python -m pytest -q -rs tests/export/onnx/test_browser.py

page: .venv/.installed  ## build the page of elmore serve from web/ (needs npm)
	$(BIN)/python scripts/build_page.py

test-page: .venv/.installed-dev  ## test that page in headless Chromium (needs npm and chromium)
	cd web && npm install --no-package-lock --no-audit --no-fund
	$(BIN)/python -m pytest -q -rs tests/serve/page

quick: .venv/.installed-dev  ## run the fast tests in two processes: no training, nothing slow
	$(BIN)/python -m pytest -q -m "not slow" --numprocesses 2 --dist loadfile

docs: .venv/.installed-docs  ## build the documentation site in build/site
	@$(BIN)/python scripts/build_site.py

tiny-model: .venv/.installed  ## retrain the model used by the tests (a minute)
	@sh recipes/tiny/train.sh

# Python is not built with sanitizers, so they are preloaded. Leak detection is off because Python
# does not free all memory at exit.
SANITIZED := build/sanitized
sanitize: .venv/.installed-dev  ## test the native kernels with sanitizers
	@if [ ! -e "$$(c++ -print-file-name=libasan.so)" ]; then \
	  echo "skipped: this compiler has no sanitizers"; exit 0; fi; set -e; \
	$(BIN)/python -m tests.kernels.libraries $(SANITIZED); \
	ELMORE_SANITIZED=1 ELMORE_KERNEL_FOLDER=$(CURDIR)/$(SANITIZED) OMP_NUM_THREADS=1 \
	LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(BIN)/python -m pytest -q tests/kernels

lint: .venv/.installed-dev  ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fix: .venv/.installed-dev  ## format the code and fix simple style errors
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test  ## lint and test: run this before you hand over a change

clean:  ## remove everything that make and the tools created
	rm -rf .venv out build .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The stamp files make later runs quick; changed settings or kernels trigger a reinstall.
.venv/.installed: pyproject.toml setup.py $(wildcard src/elmore/kernels/native/*)
	@$(PYTHON) -c 'import sys; sys.exit("elmore needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "installing elmore into .venv (a minute or two the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.installed-docs: .venv/.installed
	@echo "installing what the documentation needs"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

.venv/.installed-dev: .venv/.installed
	@echo "installing what the tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# `make help` lists what there is. Everything is installed inside this folder: .tools (uv) and .venv.
SHELL := bash
.DEFAULT_GOAL := help
PYTHON ?= python3
CONFORMANCE ?= ../shared/conformance-1.37
VENV := .venv
BIN := $(VENV)/bin
# What `make kubectl` and `make promtool` got, before what is older.
export PATH := $(CURDIR)/.tools/kubectl:$(CURDIR)/.tools/promtool:$(PATH)
# Tests start many programs of ours: compile each module once, not at every start.
unexport PYTHONDONTWRITEBYTECODE
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)

.PHONY: help up test kubectl promtool browser screenshots check fmt conformance bench chaos docs lock image clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

up: $(VENV)/.run ## set up and run a cluster (ARGS="--nodes 100 -f my.yaml")
	$(BIN)/kubestow up --kubeconfig kubestow.kubeconfig $(ARGS)

test: $(VENV)/.dev ## set up and run the tests, without the long ones
	$(BIN)/pytest -n 2 -q -m "not long"

kubectl: ## get kubectl 1.32 or newer out of this machine's packages, for the tests that need it
	scripts/kubectl

promtool: ## get promtool out of this machine's packages, for the tests of alerts and dashboard
	scripts/promtool

browser: $(VENV)/.dev ## get Chromium, Playwright and axe-core, for the tests of the page
	scripts/browser
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/browser.txt

screenshots: $(VENV)/.dev ## take pictures of every view of the page (ARGS=folder)
	$(BIN)/python scripts/screenshots.py $(ARGS)

check: $(VENV)/.dev ## what CI runs: format, lint, types, import contracts, dead code, wording, all tests, conformance
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	MYPYPATH=tests:scripts $(BIN)/mypy --explicit-package-bases tests scripts
	$(BIN)/lint-imports
	$(BIN)/python scripts/dead_code.py
	$(BIN)/python scripts/words.py
	$(BIN)/pytest -n 2 -q

fmt: $(VENV)/.dev ## format and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

conformance: $(VENV)/.dev ## run the recorded decisions of kube-scheduler (CONFORMANCE=folder)
	scripts/conformance $(CONFORMANCE)

bench: $(VENV)/.dev ## measure, and write the tables of docs/reference/benchmarks.md (ARGS=sections)
	scripts/bench --update-docs $(ARGS)

docs: $(VENV)/.dev ## write the reference pages that are generated from code
	for page in flags_page kube_scheduler_page feature_gates_page metrics_page plugin_pages; do $(BIN)/python scripts/$$page.py || exit; done

chaos: $(VENV)/.dev ## break things on purpose and count what is lost (ARGS="--share 0.1 --seed 5")
	scripts/chaos $(ARGS)

lock: $(VENV)/bin/python ## compile requirements/*.txt from pyproject.toml again
	$(UV) pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 pyproject.toml -o requirements/run.txt
	$(UV) pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 pyproject.toml --group dev -c requirements/run.txt -o requirements/dev.txt
	$(UV) pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 --group browser -c requirements/dev.txt -o requirements/browser.txt

image: $(VENV)/.dev ## build the container image without a registry, and try it (needs buildah and mmdebstrap, as root)
	deploy/build-image localhost/kubestow
	KUBESTOW_IMAGE=localhost/kubestow $(BIN)/pytest -q tests/packages/test_image.py

clean: ## remove what the other targets made
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.txt

$(VENV)/bin/python: | $(if $(filter .tools/%,$(UV)),.tools/bin/uv)
	$(UV) venv -q --python $(PYTHON) $(VENV)

# What runs is compiled here, so that no start has to where bytecode may not be written.
$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(UV) pip install -q --python $(BIN)/python --compile-bytecode --require-hashes -r requirements/run.txt
	$(UV) pip install -q --python $(BIN)/python --no-deps -e .
	$(BIN)/python -m compileall -q -j 0 src
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	touch $@

# Everything runs from .venv, which the first command that needs it makes; see `make help`.
# PYTHON: the interpreter to make it with. JOBS: how many test processes; more than cores, since tests wait a lot.
# ARGS: more for pytest, for example ARGS="-k backoff".
# COUNT: how many products to get stuck.
# ON: where the end-to-end cases run, cluster or processes.
PYTHON ?= python3
JOBS ?= 3
ARGS ?=
COUNT ?= 5
ON ?= cluster

CHART_PROGRAMS := helm kubectl kubeconform helm-unittest promtool prometheus
E2E_PROGRAMS_cluster := docker kind kubectl helm
E2E_PROGRAMS_processes := helm prometheus

PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: bench docs help demo stuck dev test lint chart e2e venv broken-venv

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/made ## See it work: all processes, stuck products found and mended, under a minute (KEEP=1 stays up)
	@$(PY) -m sweephand demo $(if $(KEEP),--keep)

stuck: .venv/made ## Insert COUNT=5 stuck products into the running system whose DATABASE_URL you name
	@$(PY) -m storefront.stuck --count $(COUNT)

dev: .venv/made ## Run the storefront's processes here until Ctrl-C
	@$(PY) -m sweephand dev --app storefront.app:create_app

test: .venv/made ## Run all tests on a PostgreSQL of their own, or on the server of DATABASE_URL
	@$(PY) -m pytest --numprocesses=$(JOBS) --ignore=tests/chart $(ARGS)

lint: .venv/made ## Check style, types and which part may import which
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-logo

chart: .venv/made build/kubernetes-schemas/made ## Check chart, manifests, rules and dashboards (needs helm and others on PATH)
	@CHART_TESTS=required tools/with_programs "$(CHART_PROGRAMS)" $(PY) -m pytest --numprocesses=$(JOBS) tests/chart $(ARGS)

e2e: .venv/made ## Try it under faults on a kind cluster of its own (KEEP=1 keeps it; ON=processes needs none)
	@tools/with_programs "$(E2E_PROGRAMS_$(ON))" $(PY) -m e2e --on=$(ON) $(if $(KEEP),--keep) $(ARGS)

bench: .venv/made ## Measure what was promised, as ratios in one run (ARGS="peers" compares with other job systems)
	@$(PY) -m tests.bench $(ARGS)

docs: .venv/made ## Write the pages of docs/ that are made from code: commands, settings, states, chart values
	@$(PY) tools/refresh_reference
	@$(PY) tools/make_values_page

venv: .venv/made ## Make or refresh .venv, the virtual environment that all else uses

# A .venv whose interpreter was removed since is made again.
.venv/made: $(if $(shell test -x $(PY) || echo broken),broken-venv)
broken-venv:

.venv/made: pyproject.toml requirements/build.txt requirements/dev.txt tools/make_venv
	@PYTHON="$(PYTHON)" tools/make_venv

build/kubernetes-schemas/made: requirements/chart.txt | .venv/made
	@rm -rf $(@D)
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target $(@D) --requirement $<
	@touch $@

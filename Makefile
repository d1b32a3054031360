PYTHON ?= python3
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help venv

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: .venv/made ## Make or refresh .venv, the virtual environment that all else uses

.venv/made: pyproject.toml requirements/build.txt requirements/dev.txt tools/make_venv
	@PYTHON="$(PYTHON)" tools/make_venv

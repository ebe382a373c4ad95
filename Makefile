# Two commands do everything: make reproduce, make test. Both set up first.
PYTHON ?= python3
VENV ?= .venv
# Another index for the torch wheel, e.g. TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
SHELL := /bin/bash
export PATH := $(abspath $(VENV))/bin:$(PATH)
export DO_NOT_TRACK := 1

.DEFAULT_GOAL := help
.PHONY: help setup reproduce test test-fast clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(VENV)/installed  ## a virtual environment with the pinned packages (TORCH_INDEX=URL names another index for torch)

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or later is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1); name another: make setup PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) \
	  --constraint constraints.txt --editable '.[test]'
	@touch $@

reproduce: setup  ## run the whole pipeline as params.yaml says and show the tables
	@python -m gpt1.stages check
	dvc repro
	gpt1 sync
	@cat data/report/table*/table*.md

test: setup  ## style, types, every test
	ruff check
	mypy
	pytest -n 2 --dist loadfile --no-loadscope-reorder

test-fast: setup  ## the tests that take less than a minute together
	pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow'

clean:  ## remove what runs made; keeps data/raw, the virtual environment and MLflow's database
	rm -rf data/{check,clean,bpe,shard,pretrain,report,logs,checkpoints} data/acquire/*/* data/{encode,finetune}/*/* .dvc/tmp .*_cache

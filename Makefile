# make reproduce, make test: both set up first.
VENV ?= .venv
export PYTHON VENV TORCH_INDEX
SHELL := /bin/bash
# $(abspath ...) divides a path at its spaces.
export PATH := $(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))/bin:$(PATH)
export DO_NOT_TRACK := 1
# two hundred Pythons start: modules are compiled once
unexport PYTHONDONTWRITEBYTECODE

PYTEST := pytest -n 2 --dist loadfile --no-loadscope-reorder
.DEFAULT_GOAL := help
.PHONY: help setup profile reproduce serve ui docs test test-all clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup:  ## a virtual environment with the pinned packages (TORCH_INDEX=URL: torch from there)
	@exec $(SHELL) gpt1/setup.sh

reproduce: profile  ## run it all as params.yaml says, or PROFILE=town, and show the tables
	@python -m gpt1.stages check
	gpt1 run
	gpt1 report
	gpt1 sync
	@gpt1 table

# An edited params.yaml is nobody's to overwrite.
profile: setup
	@if [[ '$(PROFILE)' ]] && ! grep -qx 'profile: $(PROFILE)' params.yaml; then \
	  git diff --quiet HEAD -- params.yaml || { \
	    echo 'error: params.yaml was edited, or git fails: git diff params.yaml' >&2; exit 2; }; \
	  gpt1 profile '$(PROFILE)'; fi

serve: setup  ## Prefect's server with the flows, MLflow's pages, on 127.0.0.1, until Ctrl-C
	@exec python -m flows.serve

ui: setup  ## MLflow's pages on 127.0.0.1, with all finished results, until Ctrl-C
	gpt1 sync
	@exec python -m flows.serve mlflow

docs: setup  ## the documentation, as the folder site/, readable from disk
	mkdocs build --strict --quiet

test: setup  ## style, types, the tests
	ruff check
	ruff format --check
	mypy
	$(PYTEST) -m 'not long'

test-all: setup  ## also the longest, of kills, repetitions and whole graphs
	$(PYTEST)

# What lies behind a link or a mount may be another's.
clean:  ## remove what runs made; keeps data/raw, links, mounted disks, .venv, MLflow's database
	@rm -rf .dvc/tmp .{pytest,mypy,ruff}_cache; shopt -s nullglob; mounts=$$(mount); failed=0; cd -P data && \
	for path in {check,world,clean,bpe,shard,baselines,generate,report,logs,checkpoints} {ablate,transfer,prompt}/* \
	    acquire/*/* {encode,finetune,pretrain,zero_shot}/*/*; do \
	  if [[ -L $$path || $$(cd -P "$$(dirname "$$path")" 2>&1 && pwd) != "$$(dirname "$$PWD/$$path")" ]]; then \
	    [[ ! -e $$path ]] || echo "data/$$path lies behind a link: left as it is; remove it yourself"; \
	  elif [[ $$mounts == *" on $$PWD/$$path"[\ /]* ]]; then echo "data/$$path holds a mounted disk: left as it is; remove it yourself"; \
	  else rm -rf "$$path" || failed=1; fi; done; exit $$failed

VENV ?= .venv
export PYTHON VENV TORCH_INDEX
SHELL := /bin/bash
# $(abspath ...) divides a path at its spaces.
export PATH := $(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))/bin:$(PATH)
export DO_NOT_TRACK := 1
# hundreds of Pythons start: modules are compiled once
unexport PYTHONDONTWRITEBYTECODE

PYTEST := pytest -n 2 --dist loadfile --no-loadscope-reorder
.DEFAULT_GOAL := help
.PHONY: help setup profile reproduce serve ui docs test test-all clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# VENV is touched only where its setup.made holds its path. setup.done, written last: what it was installed from.
setup:  ## a virtual environment with the pinned packages (TORCH_INDEX=URL: torch from there)
	@PATH=$${PATH#*:}; unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX; export PIP_USER=0; \
	fail() { echo "error: $$*" >&2; exit 2; }; say() { echo "set-up: $$*" >&2; }; \
	venv=$${VENV%/}; [[ $$venv == /* ]] || venv=$$(pwd -P)/$$venv; made=$$venv/setup.made; done=$$venv/setup.done; \
	[[ ! -e $$venv || -d $$venv && ! $$(ls -A "$$venv") || $$(cat "$$made" 2>&1) == "$$venv" ]] || \
	  fail "$$venv was not made by this checkout, and is left alone: remove it, or name another folder: make setup VENV=/path/to/it"; \
	last() { sed -n "s/^$$1=//p" "$$done" 2>/dev/null; }; base=$${PYTHON:-$$(last PYTHON)} index=$${TORCH_INDEX:-$$(last INDEX)}; \
	wanted() { printf '%s\n' "PYTHON=$$base" "INDEX=$$index"; cat pyproject.toml constraints.txt; }; \
	current() { [[ -x $$venv/bin/python ]] && wanted | cmp -s - "$$done"; }; ! current || exit 0; \
	{ mkdir -p "$$venv" && echo "$$venv" >"$$made" && exec 9>>"$$made"; } 2>/dev/null || fail "$$venv cannot be written: make setup VENV=/path/to/a/folder"; \
	flock 9; ! current || exit 0; \
	names=(python3 python3.{13,12,11}); [[ ! $$base ]] || names=("$$base"); for name in "$${names[@]}"; do \
	  python=$$("$$name" -I -c 'import ensurepip, sys; print(sys._base_executable if sys.version_info >= (3, 11) else "")' 2>/dev/null); \
	  [[ ! $$python ]] || break; done; \
	[[ $$python ]] || fail "expected Python 3.11 or later with venv (Debian: apt install python3-venv): make setup PYTHON=/path/to/it"; \
	[[ -f $$done && -x $$venv/bin/python && $$(last PYTHON) == "$$base" && $$(last INDEX) == "$$index" ]] || { \
	  say "an empty environment, $$venv, of $$python"; \
	  find "$$venv" -mindepth 1 ! -name setup.made -delete; why=$$("$$python" -I -m venv "$$venv" 2>&1) || fail "$${why##*$$'\n'}"; }; \
	rm -f "$$done"; [[ $$index || -e /proc/driver/nvidia ]] && torch=$$index || torch=https://download.pytorch.org/whl/cpu; \
	install() { "$$venv/bin/python" -I -m pip install --disable-pip-version-check -c constraints.txt "$$@"; }; \
	say "torch$${torch:+, from $$torch if it answers}"; \
	{ install -qq --retries 1 --no-deps $${torch:+--extra-index-url "$$torch"} torch uv && say "the other packages" && \
	  { "$$venv/bin/uv" pip install -q --python "$$venv/bin/python" -c constraints.txt -e '.[test]' || { say "not by uv: by pip"; install -q -e '.[test]'; }; }; } || \
	  fail "not installed, for the reason above (a network? pip config list); the same command begins anew"; \
	wanted >"$$done.next" && mv "$$done.next" "$$done" && say "done in $$SECONDS s"

reproduce: profile  ## run it all as params.yaml says, or PROFILE=town, and show the tables
	@python -m gpt1.stages check
	gpt1 run
	gpt1 report
	gpt1 sync
	@gpt1 table

# An edited params.yaml is kept.
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
	mypy & $(PYTEST) -m 'not long' && wait $$!

test-all: setup  ## also the longest; more examples
	$(PYTEST) --hypothesis-profile all

# Behind a link or a mount lies what may be another's.
clean:  ## remove what runs made; keeps data/raw, links, mounted disks, .venv, MLflow's database
	@rm -rf .dvc/tmp .{pytest,mypy,ruff}_cache; shopt -s nullglob; mounts=$$(mount); failed=0; cd -P data && \
	for path in {check,town,clean,bpe,shard,baselines,generate,report,logs,checkpoints} {ablation,transfer,prompt}/* \
	    acquire/*/* {encode,finetune,pretrain,zero_shot}/*/*; do \
	  if [[ -L $$path || $$(cd -P "$$(dirname "$$path")" 2>&1 && pwd) != "$$(dirname "$$PWD/$$path")" ]]; then \
	    [[ ! -e $$path ]] || echo "data/$$path lies behind a link: left as it is; remove it yourself"; \
	  elif [[ $$mounts == *" on $$PWD/$$path"[\ /]* ]]; then echo "data/$$path holds a mounted disk: left as it is; remove it yourself"; \
	  else rm -rf "$$path" || failed=1; fi; done; exit $$failed

# Every target sets up what it needs in .venv by itself. `make` alone lists the targets.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo serve chat test check format bench conformance coverage clean

VENV := .venv
PY := $(VENV)/bin/python
# The Python that makes the venv, for example: make test PYTHON=python3.12
PYTHON ?=
# More words for the program that a target runs, for example: make test ARGS='-k fold'
ARGS ?=

# The stamps name the checkout and the interpreter: a moved tree or another PYTHON is set up anew.
KEY := $(shell printf '%s' '$(CURDIR) $(PYTHON)' | cksum | cut -d ' ' -f 1)
RUN := $(VENV)/.run-$(KEY)
SERVE := $(VENV)/.serve-$(KEY)
DEV := $(VENV)/.dev-$(KEY)
# Stands while pip is at work: a venv in which pip was killed may hold half a package.
UNFINISHED := $(VENV)/.unfinished

COMMA := ,
CANDIDATES := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
BASE := import sys; print(sys.base_prefix)

# $(1) is the list of extras, $(2) what else to install. An existing venv is kept where it is whole, works, and is of the
# PYTHON asked for.
define set-up
@set -e; found=; \
for candidate in $(CANDIDATES); do \
  if "$$candidate" -c '$(USABLE)' 2>/dev/null; then found="$$candidate"; break; fi; \
done; \
if [ -z "$$found" ]; then \
  echo "agjson needs Python 3.11 or newer with the venv module." >&2; \
  echo "Looked for: $(CANDIDATES)" >&2; \
  echo "python3 is: $$(python3 --version 2>&1)" >&2; \
  echo "Name one yourself: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
  exit 1; \
fi; \
if [ -e $(UNFINISHED) ] || ! $(PY) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  || { [ -n '$(PYTHON)' ] && [ "$$($(PY) -c '$(BASE)')" != "$$("$$found" -c '$(BASE)')" ]; }; then \
  echo "Making $(VENV) with $$("$$found" --version)"; \
  rm -rf $(VENV); "$$found" -m venv $(VENV); \
fi; \
touch $(UNFINISHED); \
$(PY) -m pip install -qq --disable-pip-version-check --editable '.[$(1)]' $(2) || { rm -f $(UNFINISHED); exit 1; }; \
rm -f $(UNFINISHED); touch $@
endef

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F '|' '{ printf "make %-12s %s\n", $$1, $$2 }'

# What the demo needs, and no more.
$(RUN): pyproject.toml
	@echo "Setting up $(VENV) for the demo (once)"
	$(call set-up,anthropic$(COMMA)cli$(COMMA)testing)

$(SERVE): pyproject.toml
	@echo "Setting up $(VENV) for the server and the chat (once)"
	$(call set-up,anthropic$(COMMA)cli$(COMMA)client$(COMMA)serve$(COMMA)testing,'fastapi>=0.115' 'uvicorn>=0.34')

$(DEV): pyproject.toml
	@echo "Setting up $(VENV) for tests and checks (once; a minute or two)"
	$(call set-up,dev)

demo: $(RUN) ## A recorded conversation through the real client, live, then its fold
	@$(PY) examples/demo.py $(ARGS)

serve: $(SERVE) ## An agent behind one endpoint, with a page at http://127.0.0.1:8000
	@$(PY) examples/anthropic_server.py $(ARGS)

chat: $(SERVE) ## A chat with it in the terminal
	@$(PY) examples/chat.py $(ARGS)

test: $(DEV) ## All tests, but for what `make check` runs
	@$(PY) -m pytest -n auto -m 'not packaging and not docs' $(ARGS)

check: $(DEV) ## Lint, format, types, the built distribution, the examples of the docs
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m pyright
	@$(PY) -m mypy
	@$(PY) -m pytest -q -m 'packaging or docs'

format: $(DEV) ## Format the code and mend what lint can mend
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: $(DEV) ## Ratios to a floor in the same run; writes docs/performance.md
	@$(PY) -m benchmarks $(ARGS)

conformance: $(DEV) ## Writes the pages of docs/ that are generated from tests and tables
	@$(PY) -m tests.conformance $(ARGS)
	@$(PY) -m tests.function_calling $(ARGS)
	@$(PY) -m tests.surface $(ARGS)

coverage: $(DEV) ## Lines and branches that no test runs
	@$(PY) -m coverage run -m pytest -q -m 'not packaging and not docs' $(ARGS)
	@$(PY) -m coverage report

clean: ## Remove .venv and everything that was built
	rm -rf $(VENV) build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

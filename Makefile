# Two commands do all the set-up: `make quickstart` and `make test`. Both create and reuse .venv.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/pip install --disable-pip-version-check -qq --constraint constraints.txt

.PHONY: help quickstart test check kills full-disk format clean

help:
	@echo "make quickstart   train a translator on the built-in corpus, score it, write its bundle (minutes)"
	@echo "make test         lint, types, import contracts, all tests (what CI runs)"
	@echo "make check        the same without the slow tests: before every commit"
	@echo "make kills        kill a run 200 times and compare its bytes with an undisturbed one's (an hour)"
	@echo "make full-disk    a small filesystem that is full at every 16 KB of a run (root on Linux; an hour)"
	@echo "make format       format the code"

.venv/installed: pyproject.toml constraints.txt
	@echo "Installing manyheads and what it needs into .venv (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "  torch";     $(INSTALL) torch
	@echo "  manyheads"; $(INSTALL) --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	@echo "  tools for development"; $(INSTALL) --editable ".[dev]"
	@touch $@

quickstart: .venv/installed
	@$(BIN)/manyheads quickstart $(ARGS)

test: .venv/installed-dev lint
	$(BIN)/python -m pytest

kills full-disk: .venv/installed-dev
	PYTHONPATH=tests $(BIN)/python tests/faults/long.py $@ $(ARGS)

check: .venv/installed-dev lint
	$(BIN)/python -m pytest -m "not slow"

.PHONY: lint
lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv runs .pytest_cache .mypy_cache .ruff_cache .hypothesis

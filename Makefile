# Each target sets up what it needs: `make demo` and `make test` work in a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Two processes of tests; more threads in each would fight over the same cores. Tests that share what
# takes long to make are of one group, and run in one process.
TEST_FLAGS ?= -n 2 --dist loadgroup
# How long `make fuzz` runs; the number of inputs grows with it.
FUZZ_MINUTES ?= 30
FUZZ_SEED ?= 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-megatron test test-sampled test-all fuzz bench lint format wheel clean

help:
	@echo "make demo           train, record, draft rules, catch silent bugs (minutes)"
	@echo "make demo-megatron  a silent bug in a tensor-parallel GPT of megatron-core"
	@echo "make test           the tests"
	@echo "make test-sampled   with slow ones, of large families a sample, as .ci/run"
	@echo "make test-all       with all slow ones: zoo, clean jobs, ranks, packaging"
	@echo "make fuzz           damaged files, kills, full disks (half an hour)"
	@echo "make lint           ruff, strict types, import arrows"
	@echo "make bench          print the numbers: start, compile, check, record, run"
	@echo "make format         rewrite the code in its canonical form"
	@echo "make wheel          build dist/*.whl"

# torch goes first and alone, so that the build that is at hand is taken and not replaced.
$(READY): pyproject.toml constraints.txt
	@echo "sets up $(VENV): installs PyTorch and what tspec needs (some minutes, once)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

setup: $(READY)

demo: $(READY)
	$(BIN)/python docs/demo/run.py

# The extra `megatron` is one of those that `dev` has.
demo-megatron: $(READY)
	$(BIN)/python docs/demo/megatron.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TEST_FLAGS)

test-sampled: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TEST_FLAGS) -m 'not exhaustive'

test-all: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TEST_FLAGS) -m ''

fuzz: $(READY)
	$(BIN)/python -m tests.faults.fuzz --minutes $(FUZZ_MINUTES) --seed $(FUZZ_SEED)

# A test file that cannot be imported is named here, not only where all tests have run.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy tspec
	$(BIN)/lint-imports
	@$(BIN)/python -m pytest --collect-only -qqq -m '' > $(BIN)/collected || { cat $(BIN)/collected; exit 1; }

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/run.py

wheel: $(READY)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

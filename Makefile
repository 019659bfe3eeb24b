# Every target sets up what it needs: .venv, PyTorch, the build. make help lists them, CONTRIBUTING.md explains them.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash

PY := .venv/bin/python
CMAKE := .venv/bin/cmake
export TORCH_INDEX_URL NPU_DEPS_DIR PYTHON

help:  ## lists the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 20

.venv/ready: tools/setup_env.sh requirements/build.txt requirements/test.txt
	@tools/setup_env.sh build test
	@touch $@

.venv/ready-lint: .venv/ready requirements/lint.txt
	@tools/setup_env.sh lint
	@touch $@

build: .venv/ready  ## builds the libraries into build/release and the package folder
	@$(PY) setup.py -q build_ext --inplace
	@if [ ! -e .venv/installed ] || [ pyproject.toml -nt .venv/installed ]; then \
	  echo "== Installing the package in editable form" && \
	  $(PY) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e . && \
	  touch .venv/installed; fi

demo: build  ## trains a small network on the simulated device
	@$(PY) examples/train_digits.py $(ARGS)

test: build  ## GoogleTest, pytest and the layering check; ARGS go to pytest
	@$(CMAKE) -S . -B build/release -DNPU_BUILD_TESTS=ON >/dev/null
	@$(CMAKE) --build build/release
	@tools/run_tests.sh $(ARGS)

conformance: build  ## the long sweep over PyTorch's own test suites; ARGS="--list" shows its areas
	@$(PY) tools/conformance.py $(ARGS)

bench: build  ## speed as ratios to PyTorch on the CPU
	@$(PY) bench/run.py $(ARGS)

lint: .venv/ready-lint  ## ruff, mypy, clang-format, clang-tidy, layering
	@tools/lint.sh

format: .venv/ready-lint  ## rewrites sources the way lint wants them
	@tools/lint.sh --fix

sanitize: .venv/ready  ## runtime tests under ASan+UBSan and TSan; ARGS: asan or tsan
	@tools/sanitize.sh $(ARGS)

wheel: .venv/ready  ## builds a wheel into dist/ and tries it in a new environment
	@$(PY) tools/check_wheel.py

clean:  ## removes builds, keeps .venv
	@rm -rf build dist *.egg-info torch_npu_lite/_C.*.so torch_npu_lite/{lib,include,share} .venv/installed

.PHONY: help build demo test conformance bench lint format sanitize wheel clean

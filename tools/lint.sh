#!/usr/bin/env bash
# Checks the form of all sources, also after one check has failed, then says which failed. --fix rewrites what it can.
set -uo pipefail
cd "$(dirname "$0")/.."
BIN=.venv/bin
mapfile -t cpp < <(git ls-files 'csrc/*.h' 'csrc/*.cpp' 'torch_npu_lite/csrc/*' 'test/*.h' 'test/*.cpp' 'examples/*.cpp' |
  grep -E '\.(h|cpp)$')

if [ "${1:-}" = --fix ]; then
  $BIN/ruff check --fix .
  $BIN/clang-format -i "${cpp[@]}"
  exit
fi

failed=()
check() {
  local name=$1
  shift
  printf '== %s\n' "$name"
  "$@" || failed+=("$name")
}

# clang-tidy reads the runtime and the kernels: they need no torch headers, whose cost would be minutes.
tidy() {
  $BIN/cmake -S . -B build/lint -G Ninja -DCMAKE_MAKE_PROGRAM="$PWD/$BIN/ninja" \
    -DNPU_BUILD_TORCH=OFF -DNPU_BUILD_TESTS=OFF >/dev/null || return 1
  git ls-files 'csrc/runtime/*.cpp' 'csrc/kernels/*.cpp' |
    xargs -P "$(nproc)" -n 2 $BIN/clang-tidy --quiet -p build/lint 2> >(grep -v 'warnings generated' >&2)
}

check ruff $BIN/ruff check .
check mypy $BIN/mypy
check clang-format $BIN/clang-format --dry-run -Werror "${cpp[@]}"
check clang-tidy tidy
check layering $BIN/python test/check_layering.py

if [ ${#failed[@]} -gt 0 ]; then
  echo "make lint: FAILED in: ${failed[*]}. make format rewrites what can be rewritten."
  exit 1
fi
echo "make lint: all checks passed"

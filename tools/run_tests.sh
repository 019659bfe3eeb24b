#!/usr/bin/env bash
# Runs every suite, also after one has failed, then says which failed. Arguments go to pytest.
set -uo pipefail
cd "$(dirname "$0")/.."
BUILD=build/release
failed=()

suite() {
  local name=$1
  shift
  printf '\n== %s\n' "$name"
  "$@" || failed+=("$name")
}

suite GoogleTest .venv/bin/ctest --test-dir $BUILD --output-on-failure --no-tests=error --progress
suite pytest .venv/bin/python -m pytest "$@"
suite layering .venv/bin/python test/check_layering.py

echo
if [ ${#failed[@]} -gt 0 ]; then
  echo "make test: FAILED in: ${failed[*]}"
  exit 1
fi
echo "make test: all suites passed"

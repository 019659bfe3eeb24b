#!/usr/bin/env bash
# Builds the runtime and the kernels with sanitizers, without torch, and runs their GoogleTests.
set -euo pipefail
cd "$(dirname "$0")/.."
CMAKE=.venv/bin/cmake

# ThreadSanitizer of older compilers cannot start on kernels with much address randomisation.
if setarch -R true 2>/dev/null; then RUN=(setarch -R); else RUN=(); fi

sanitize() {
  local name=$1 kinds=$2
  printf '\n== %s (-fsanitize=%s)\n' "$name" "$kinds"
  $CMAKE -S . -B "build/$name" -G Ninja -DCMAKE_MAKE_PROGRAM="$PWD/.venv/bin/ninja" -DCMAKE_BUILD_TYPE=Debug \
    -DNPU_BUILD_TORCH=OFF -DNPU_SANITIZE="$kinds" >/dev/null
  $CMAKE --build "build/$name"
  "${RUN[@]}" .venv/bin/ctest --test-dir "build/$name" --output-on-failure --no-tests=error --progress
}

# The heap frames of detect_stack_use_after_return are too loosely aligned for 64-byte registers in g++ 12.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0:strict_init_order=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
for name in "${@:-asan tsan}"; do
  for one in $name; do
    case $one in
      asan) sanitize asan address,undefined ;;
      tsan) sanitize tsan thread ;;
      *) echo "error: $one is none of: asan tsan" >&2; exit 1 ;;
    esac
  done
done
echo "make sanitize: all builds passed"

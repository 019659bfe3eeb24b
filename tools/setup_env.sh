#!/usr/bin/env bash
# Makes .venv ready: tools/setup_env.sh LIST..., where each LIST names a file requirements/LIST.txt.
#
# Creates .venv when there is none, installs PyTorch and the lists into it, and what only root can install when it is
# run by root; otherwise it says which command does that. Settings:
#   PYTHON           the Python that .venv is made from (python3)
#   TORCH_INDEX_URL  package index that PyTorch is taken from, such as that of the CPU wheels (pip's own setting)
#   NPU_DEPS_DIR     folder with all wheels and archives; nothing is downloaded when set
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
TORCH="torch==2.13.*"
VENV=.venv

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
step() { printf '== %s\n' "$*"; }

check_platform() {
  [ "$(uname -s)" = Linux ] || fail "torch_npu_lite supports Linux only; this is $(uname -s)."
  case "$(uname -m)" in
    x86_64 | aarch64) ;;
    *) fail "torch_npu_lite supports x86-64 and aarch64; this is $(uname -m)." ;;
  esac
}

# Debian's and Ubuntu's names of the system packages that are missing here.
missing_packages() {
  command -v c++ >/dev/null || [ -n "${CXX:-}" ] || echo g++
  command -v make >/dev/null || echo make
  command -v "$PYTHON" >/dev/null || { echo python3 python3-venv python3-dev; return; }
  "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  "$PYTHON" -c 'import os, sysconfig, sys
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || echo python3-dev
  if [ -z "${NPU_DEPS_DIR:-}" ] && [ ! -e /usr/src/googletest ] && [ "$(id -u)" = 0 ]; then
    echo googletest   # others download the pinned archive
  fi
}

install_packages() {
  local packages
  packages=$(missing_packages | xargs)
  [ -n "$packages" ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    step "Installing $packages"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages >/dev/null ||
      fail "apt-get could not install $packages; its message is above."
  else
    fail "missing on this system: $packages. Install with: sudo apt-get install $packages (or your system's equivalent)"
  fi
}

check_compiler() {
  [ -z "${CXX:-}" ] || command -v "${CXX%% *}" >/dev/null ||
    fail "CXX=$CXX is not a program. Leave CXX unset, or name an installed compiler such as g++ or clang++-16."
}

check_python() {
  "$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' ||
    fail "Python 3.10 to 3.13 is needed; $PYTHON is $("$PYTHON" -V 2>&1). Choose one: make PYTHON=python3.11 ..."
}

make_venv() {
  if [ ! -e $VENV ]; then
    step "Creating $VENV with $("$PYTHON" -V)"
    "$PYTHON" -m venv $VENV || fail "$PYTHON could not create $VENV."
  fi
  $VENV/bin/python -c '' 2>/dev/null || fail "$VENV is broken (was it moved?). Remove it and run again: rm -rf $VENV"
}

pip_install() {
  local options=(--disable-pip-version-check)
  [ -z "${NPU_DEPS_DIR:-}" ] || options+=(--no-index --find-links "$NPU_DEPS_DIR")
  $VENV/bin/python -m pip install "${options[@]}" "$@"
}

install_torch() {
  local found
  found=$($VENV/bin/python -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null || true)
  case "$found" in 2.13.*) return ;; esac
  step "Installing $TORCH${TORCH_INDEX_URL:+ from $TORCH_INDEX_URL}"
  pip_install ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} "$TORCH" ||
    fail "PyTorch could not be installed. Check TORCH_INDEX_URL and NPU_DEPS_DIR, or run: $VENV/bin/pip install '$TORCH'"
}

# A line "# pip: OPTIONS" in a list adds options of pip's for it.
install_lists() {
  local list options
  for list in "$@"; do
    step "Installing requirements/$list.txt"
    options=$(sed -n 's/^# pip: //p' "requirements/$list.txt")
    # shellcheck disable=SC2086
    pip_install -q $options -r "requirements/$list.txt" ||
      fail "pip could not install requirements/$list.txt; its message is above."
  done
}

check_platform
install_packages
check_compiler
check_python
make_venv
install_torch
install_lists "$@"

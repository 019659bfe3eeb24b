"""The architecture check finds what it is meant to find, and nothing in a tree that keeps the rules."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("check_layering", Path(__file__).parent.parent / "check_layering.py")
assert _spec
assert _spec.loader
check_layering = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_layering)

HEADER = "#pragma once\n"
DRIVER = "\nclass NPU_API Driver {\n" + "  virtual int f() = 0;\n" * 26 + "};\n"
GOOD = {
    "csrc/runtime/driver/driver.h": HEADER + '#include "runtime/status.h"\n',
    "csrc/runtime/status.h": HEADER + "#include <string>\n",
    "csrc/runtime/stream.h": HEADER + '#include "runtime/driver/driver.h"\n',
    "csrc/kernels/copy.h": HEADER + '#include "runtime/stream.h"\n',
    "csrc/aten/ops/copy.cpp": '#include <ATen/ATen.h>\n#include "kernels/copy.h"\n#include "aten/bridge/stream.h"\n',
    "csrc/aten/bridge/stream.h": HEADER + '#include "runtime/stream.h"\n',
    "torch_npu_lite/csrc/module.cpp": '#include <torch/csrc/utils/pybind.h>\n#include "aten/bridge/stream.h"\n',
}


def violations(root: Path, changed: dict[str, str]) -> list[str]:
    for name, text in (GOOD | changed).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return check_layering.violations(root)


def test_a_tree_that_keeps_the_rules_has_no_violation(tmp_path):
    assert violations(tmp_path, {}) == []


def test_a_lambda_ends_where_it_ends(tmp_path):
    text = "const Info kInfo{\n    .run =\n        [](int a) {\n          a++;\n        },\n};\n" + "int x;\n" * 80
    assert violations(tmp_path, {"csrc/runtime/a.cpp": text}) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("csrc/runtime/a.cpp", "#include <c10/core/Device.h>", "knows neither torch nor Python"),
        ("csrc/kernels/a.cpp", "#include <Python.h>", "knows neither torch nor Python"),
        ("csrc/runtime/a.cpp", '#include "kernels/copy.h"', "may include from runtime only"),
        ("csrc/kernels/a.cpp", '#include "aten/bridge/stream.h"', "may include from runtime, kernels only"),
        ("csrc/aten/bridge/a.cpp", '#include "aten/ops/table.h"', ""),
        ("csrc/aten/ops/a.cpp", "#include <pybind11/pybind11.h>", "Python belongs in torch_npu_lite/csrc"),
        ("csrc/aten/ops/a.cpp", '#include "aten/bridge/hooks.h"', "operators may include aten/bridge/allocator.h"),
        ("test/runtime/a_test.cpp", "#include <ATen/ATen.h>", "knows neither torch nor Python"),
        ("csrc/runtime/status.h", HEADER + '#include "runtime/stream.h"', "include cycle"),
        ("csrc/runtime/driver/sim.cpp", '#include "runtime/stream.h"', "stands above the driver"),
        ("csrc/runtime/a.cpp", '#include "../status.h"', "include by path"),
        ("csrc/runtime/a.cpp", "int x;\n" * 501, "501 lines, at most 500"),
        ("csrc/runtime/a.cpp", "void f(int a) {\n" + "  a++;\n" * 80 + "}\n", "a function of 82 lines"),
        ("torch_npu_lite/a.py", "x = 1\n" * 301, "301 lines, at most 300"),
        ("csrc/runtime/driver/driver.h", HEADER + DRIVER, "26 virtual methods"),
        ("csrc/runtime/BadName.cpp", "", "lower_case_with_underscores"),
        ("csrc/runtime/a.h", "", "#pragma once"),
        ("test/runtime/a.cpp", "\nTEST(A, B) {}", "only *_test.cpp is built"),
        ("test/python/b.py", "\ndef test_b(): pass", "pytest collects test_*.py only"),
    ],
)
def test_a_violation_is_reported(tmp_path, name, text, message):
    (tmp_path / "csrc/aten/ops").mkdir(parents=True)
    (tmp_path / "csrc/aten/ops/table.h").write_text(HEADER)
    found = violations(tmp_path, {name: text})
    assert any(message in line and line.startswith(name) for line in found), found

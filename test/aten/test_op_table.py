"""The operator table against PyTorch's own list."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
OPS = ROOT / "csrc" / "aten" / "ops"
REPORT = ROOT / "tools" / "op_report.py"
sys.path.insert(0, str(ROOT / "tools"))

from gen import layouts, table  # noqa: E402
from gen.schema import Schemas  # noqa: E402
from op_report import TESTS, needs_backend_kernel  # noqa: E402


@pytest.fixture(scope="module")
def schemas():
    return Schemas()


@pytest.fixture(scope="module")
def rows(schemas):
    return table.load(OPS / "npu_functions.yaml", schemas)


@pytest.fixture(scope="module")
def exclusions():
    groups = yaml.safe_load((OPS / "npu_exclusions.yaml").read_text())
    assert all(group["why"] for group in groups)
    return [pattern for group in groups for pattern in group["operators"]]


@pytest.fixture(scope="module")
def layout_operators(schemas):
    return layouts.load(OPS / "npu_layouts.yaml", schemas)


def covered(rows) -> set[str]:
    return {str(function.func.name) for row in rows for function in row.functions}


def test_every_operator_has_a_route_or_a_reason(schemas, rows, layout_operators, exclusions):
    done = covered(rows) | {operator.name for operator in layout_operators}
    missing = [
        name
        for name, function in schemas.functions.items()
        if needs_backend_kernel(function)
        and name not in done
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in exclusions)
    ]
    assert missing == []


def test_every_structured_group_is_covered(schemas, rows):
    done = covered(rows)
    missing = {str(g.functional.func.name) for g in schemas.groups.values() if g.structured} - done
    assert missing == set()
    assert sum(row.structured for row in rows) == 275


def test_every_operator_of_a_layout_that_waits_says_why(layout_operators):
    assert {operator.key for operator in layout_operators} == {
        "Sparse", "SparseCsr", "NestedTensor", "Quantized", "Dense"
    }  # fmt: skip
    assert [operator for operator in layout_operators if operator.route != "native" and not operator.why] == []
    routes = {(operator.key, operator.name): operator.route for operator in layout_operators}
    assert routes["Sparse", "_indices"] == "native"
    assert routes["Sparse", "_coalesce"] == "synchronous"


def test_no_exclusion_is_idle(schemas, rows, layout_operators, exclusions):
    done = covered(rows) | {operator.name for operator in layout_operators if operator.key == layouts.DENSE}
    open_names = [n for n, f in schemas.functions.items() if needs_backend_kernel(f) and n not in done]
    idle = [pattern for pattern in exclusions if not fnmatch.filter(open_names, pattern)]
    assert idle == []


def test_hand_written_rows_name_the_file_that_registers_them(rows):
    for row in rows:
        if row.file is None:
            continue
        source = (OPS / row.file).read_text()
        for function in row.functions:
            assert f'"{function.func.name}"' in source, f"{row.file} does not register {function.func.name}"


def test_hand_written_registrations_have_rows(rows):
    named = {str(function.func.name) for row in rows if row.file for function in row.functions}
    for source in OPS.glob("*.cpp"):
        for block in re.findall(
            r"TORCH_LIBRARY_IMPL\(aten, PrivateUse1, m\) \{(.*?)^\}", source.read_text(), re.DOTALL | re.MULTILINE
        ):
            for name in re.findall(r'm\.impl\(\s*"([^"]+)"', block):
                assert name in named, f"{source.name} registers {name}, which has no row with file: {source.name}"


def test_rows_are_ordered_from_fast_to_general(rows):
    order = {route: place for place, route in enumerate(table.ROUTES)}
    for row in rows:
        assert row.route == sorted(row.route, key=order.get), f"{row.func}: {row.route}"


def test_every_operator_is_reached_by_a_test_or_has_a_reason(rows):
    reached = {name.removeprefix("aten::") for name in json.loads(TESTS.read_text())}
    groups = yaml.safe_load((Path(__file__).parent / "untested_ops.yaml").read_text())
    assert all(group["why"] for group in groups)
    patterns = [pattern for group in groups for pattern in group["operators"]]
    left = sorted(covered(rows) - reached)
    assert [name for name in left if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not fnmatch.filter(left, pattern)] == []


def test_the_readme_has_the_numbers_of_the_table(rows):
    waiting = sum(len(row.functions) for row in rows if row.why)
    text = f"{len(covered(rows)):,} operators. All but {waiting} run asynchronously"
    assert text in (ROOT / "README.md").read_text(), f"README.md should say: {text}"


def test_the_report_tells_route_waits_and_tests_of_an_operator():
    def report(*options: str) -> str:
        return subprocess.run([sys.executable, REPORT, *options], capture_output=True, text=True, check=True).stdout

    whole = report()
    assert re.search(r"^add\.Tensor +kernel,iterator,library +vector .*float32.* op_db:add", whole, re.MULTILINE)
    assert "no reason given" not in whole
    waiting = report("--operator", "nonzero", "--route", "synchronous")
    assert re.search(r"^nonzero +synchronous .* the number of non-zero elements +op_db:", waiting, re.MULTILINE)
    assert re.search(r"^\d operators with a route:$", waiting, re.MULTILINE)
    assert re.search(r"^_coalesce \[Sparse\] +synchronous", report("--operator", "_coalesce [Sparse]"), re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--route", "fast"], "no operator has the route fast; there are iterator, kernel, library, native"),
        (["--operator", "relu", "--route", "view"], "no operator with the route view has a name like relu"),
    ],
)
def test_a_report_of_nothing_is_an_error(options, message):
    ended = subprocess.run([sys.executable, REPORT, *options], capture_output=True, text=True)
    assert ended.returncode == 2 and message in ended.stderr


def test_a_report_ends_with_its_reader():
    ended = subprocess.run(
        f"'{sys.executable}' '{REPORT}' | head -1", shell=True, executable="/bin/bash", capture_output=True, text=True
    )
    assert ended.stdout.startswith("operator ") and ended.stderr == ""


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"func": "no_such_operator", "route": "library"}, "no_such_operator is not an operator"),
        ({"func": "abs", "route": "fast"}, "unknown route fast"),
        ({"func": "abs", "route": "library", "engine": "warp"}, "unknown engine warp"),
        ({"func": "nonzero", "route": "synchronous"}, "says why it must wait"),
        ({"func": "abs", "route": "library", "speed": 1}, "unknown columns"),
    ],
)
def test_a_bad_row_is_an_error_that_names_it(schemas, entry, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        table.make_row(entry, schemas)
    assert entry["func"] in str(error.value)

"""Prints every operator of the npu device: route, engine, dtypes, whether the host waits, which tests reach it.

Operators on sparse, nested and quantized tensors carry their dispatch key: "_coalesce [Sparse]".

    .venv/bin/python tools/op_report.py [--operator PATTERN] [--route ROUTE] [--counts]

Routes come from csrc/aten/ops/npu_functions.yaml and npu_layouts.yaml. Dtypes and tests are those that the test suite
has seen, recorded in test/aten/op_tests.json. Tests add to the record, all of them or some:
    RECORD_OP_TESTS=1 python -m pytest test/framework/opinfo/test_ops.py -k hypot -m ""
"""

import argparse
import collections
import fnmatch
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    import yaml

    from gen import layouts, table
    from gen.layouts import LayoutOperator
    from gen.schema import Schemas
except ModuleNotFoundError as missing:
    sys.exit(f"error: {sys.executable} has no {missing.name}. Run it with the Python of the build: .venv/bin/python")

ROOT = Path(__file__).resolve().parent.parent
OPS = ROOT / "csrc" / "aten" / "ops"
TESTS = ROOT / "test" / "aten" / "op_tests.json"
SHOWN_TESTS = 3


@dataclass
class Line:
    """One operator of the report."""

    operator: str
    route: str
    engine: str
    dtypes: str
    waits: str
    tests: str


def needs_backend_kernel(function: Any) -> bool:
    """Whether PyTorch neither composes the operator nor derives it from another form."""
    return not function.has_composite_kernel and not function.structured and function.structured_delegate is None


def excluded(name: str, exclusions: list[dict]) -> str | None:
    """Why an operator has no row."""
    for group in exclusions:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in group["operators"]):
            return group["why"]
    return None


def routed(rows: list[table.Row], tests: dict[str, dict]) -> list[Line]:
    lines = []
    for row in rows:
        for function in row.functions:
            name = str(function.func.name)
            seen = tests.get(f"aten::{name}", {"dtypes": [], "tests": []})
            shown = " ".join(seen["tests"][:SHOWN_TESTS])
            engine = "" if "view" in row.route or "synchronous" in row.route else row.engine
            lines.append(Line(name, ",".join(row.route), engine, " ".join(seen["dtypes"]), row.why or "", shown))
    return sorted(lines, key=lambda line: line.operator)


def routed_by_layout(operators: list[LayoutOperator]) -> list[Line]:
    lines = []
    for operator in operators:
        waits = operator.why or "" if operator.route in ("native", "synchronous") else ""
        lines.append(Line(f"{operator.name} [{operator.key}]", operator.route, "", "", waits, ""))
    return sorted(lines, key=lambda line: line.operator)


def without_route(
    rows: list[table.Row], operators: list[LayoutOperator], schemas: Schemas, exclusions: list[dict], pattern: str
) -> dict[str, list[str]]:
    """Reason -> operators a backend could provide and this one does not."""
    done = {str(function.func.name) for row in rows for function in row.functions}
    done |= {operator.name for operator in operators}
    found = collections.defaultdict(list)
    for name, function in sorted(schemas.functions.items()):
        if needs_backend_kernel(function) and name not in done and named(name, pattern):
            found[excluded(name, exclusions) or "no reason given"].append(name)
    return found


def named(name: str, pattern: str) -> bool:
    """Whether the pattern gives the name as shown, "_coalesce [Sparse]", or without its key."""
    return fnmatch.fnmatchcase(name.split(" ")[0], pattern) or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def print_table(lines: list[Line]) -> None:
    titles = Line("operator", "route", "engine", "dtypes", "waits for the host because", "tested by")
    columns = zip(*(vars(line).values() for line in [titles, *lines]), strict=True)
    widths = [max(map(len, column)) for column in columns]
    for line in [titles, *lines]:
        cells = (value.ljust(width) for value, width in zip(vars(line).values(), widths, strict=True))
        print("  ".join(cells).rstrip())


def print_counts(title: str, lines: list[Line]) -> None:
    print(f"\n{len(lines)} {title}:")
    for route, count in collections.Counter(line.route for line in lines).most_common():
        print(f"{count:6}  {route}")
    print(f"{sum(bool(line.waits) for line in lines):6}  of them make the host wait")


def print_reasons(left: dict[str, list[str]]) -> None:
    print(f"\n{sum(map(len, left.values()))} operators without a route:")
    for reason, names in left.items():
        print(f"{len(names):6}  {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operator", default="*", help="pattern of names, such as 'index*' or '* [Sparse]'")
    parser.add_argument("--route", help="only operators that have this route")
    parser.add_argument("--counts", action="store_true", help="print the counts alone")
    options = parser.parse_args()

    schemas = Schemas()
    rows = table.load(OPS / "npu_functions.yaml", schemas)
    operators = layouts.load(OPS / "npu_layouts.yaml", schemas)
    exclusions = yaml.safe_load((OPS / "npu_exclusions.yaml").read_text())
    every = routed(rows, json.loads(TESTS.read_text())) + routed_by_layout(operators)
    routes = sorted({route for line in every for route in line.route.split(",")})
    if options.route not in (None, *routes):
        parser.error(f"no operator has the route {options.route}; there are {', '.join(routes)}")
    shown = [line for line in every if named(line.operator, options.operator)]
    shown = [line for line in shown if options.route in (None, *line.route.split(","))]
    left = without_route(rows, operators, schemas, exclusions, options.operator) if options.route is None else {}
    if not shown and not left:
        route = f" with the route {options.route}" if options.route else ""
        parser.error(f"no operator{route} has a name like {options.operator}; 'add*' finds add.Tensor")

    if not options.counts:
        print_table(shown)
    dense = [line for line in shown if " [" not in line.operator]
    print_counts("operators with a route", dense)
    print(f"{sum(not line.tests for line in dense):6}  of them are reached by no recorded test")
    print_counts("operators on sparse, nested and quantized tensors", [line for line in shown if line not in dense])
    if options.route is None:
        print_reasons(left)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # piped to head, it ends with head
    main()

"""Spreads the generated C++ over files and writes those that changed."""

import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from gen import layouts, plain, structured
from gen.layouts import LayoutOperator
from gen.schema import identifier
from gen.table import Row

NOTE = "// Written by tools/gen_ops.py from csrc/aten/ops/npu_functions.yaml; do not edit.\n"
LAYOUTS_NOTE = NOTE.replace("npu_functions", "npu_layouts")


def generated(row: Row) -> bool:
    """Whether the generator writes the registration; other rows name the file that has it."""
    return row.file is None and not set(row.route) & {"composite", "fallback"}


def all_files(rows: list[Row], layout_operators: list[LayoutOperator], shards: int) -> dict[str, Callable[[], str]]:
    """File name -> function that makes its text."""
    files: dict[str, Callable[[], str]] = {
        "op_counters.h": partial(counters_header, rows),
        "op_counters.cpp": partial(counters_source, rows),
        "layout_operators.cpp": partial(layouts.source, layout_operators, LAYOUTS_NOTE),
    }
    for shard in range(shards):
        part = [row for row in rows if generated(row) and shard_of(row, shards) == shard]
        files[f"operators_{shard}.cpp"] = partial(shard_source, part)
    return files


def shard_of(row: Row, shards: int) -> int:
    """From the name alone, so that a new row changes one shard."""
    return zlib.crc32(row.func.encode()) % shards


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def operators(rows: list[Row]) -> list[tuple[str, str]]:
    """(identifier, full name) of each operator that has an entry of its own."""
    functions = [f for row in rows if not set(row.route) & {"composite", "fallback"} for f in row.functions]
    return [(identifier(f), f"aten::{f.func.name}") for f in sorted(functions, key=identifier)]


def declaration(names: Iterable[str]) -> str:
    return "namespace op {\n" + "".join(f"extern OpCounters {name};\n" for name in names) + "}  // namespace op\n"


def counters_header(rows: list[Row]) -> str:
    return f"""{NOTE}#pragma once

#include "aten/ops/op_stats.h"

namespace npu::aten {{

{declaration(name for name, _ in operators(rows))}
}}  // namespace npu::aten
"""


def counters_source(rows: list[Row]) -> str:
    """Constant-initialised: kernels may count before any other code has run."""
    causes = {identifier(f): row.why for row in rows if "synchronous" in row.route for f in row.functions}
    found = [(name, f'"{full_name}"', f'"{causes.get(name, "")}"') for name, full_name in operators(rows)]
    variables = "\n".join(f"constinit OpCounters {name}{{{full_name}, {cause}}};" for name, full_name, cause in found)
    addresses = "\n".join(f"    &op::{name}," for name, _, _ in found)
    return f"""{NOTE}#include "op_counters.h"

namespace npu::aten {{

namespace op {{
{variables}
}}  // namespace op

namespace {{
constexpr OpCounters* const addresses[] = {{
{addresses}
}};
}}  // namespace
constinit const std::span<OpCounters* const> detail::table(addresses);

}}  // namespace npu::aten
"""


def shard_source(rows: list[Row]) -> str:
    includes: set[str] = set()
    definitions, registered = [], []
    for row in rows:
        module = structured if row.structured and "library" in row.route else plain
        includes.update(module.headers(row))
        definitions.append(module.generate(row))
        registered += module.registrations(row)
    include_lines = "\n".join(f"#include <{header}>" for header in sorted(includes))
    counters = declaration(name for name, _ in operators(rows))
    body = "\n".join(text for text in definitions if text)
    registrations = "\n".join(f"  {line}" for line in registered)
    return f"""{NOTE}#include "aten/ops/pch.h"

{include_lines}

namespace npu::aten {{

{counters}
namespace {{

{body}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {{
{registrations}
}}

}}  // namespace
}}  // namespace npu::aten
"""

"""Spreads the generated C++ over files and writes those that changed."""

import zlib
from collections.abc import Callable
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
        "op_ids.h": partial(ids_header, rows),
        "op_ids.cpp": partial(ids_source, rows),
        "layout_operators.cpp": partial(layouts.source, layout_operators, LAYOUTS_NOTE),
    }
    for shard in range(shards):
        part = [row for row in rows if generated(row) and shard_of(row, shards) == shard]
        files[f"operators_{shard}.cpp"] = partial(shard_source, part)
    return files


def shard_of(row: Row, shards: int) -> int:
    """From the name alone, so that a new row changes one file."""
    return zlib.crc32(row.func.encode()) % shards


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def operators(rows: list[Row]) -> list[tuple[str, str]]:
    """(identifier, full name) of each operator that has an entry of its own."""
    functions = [f for row in rows if not set(row.route) & {"composite", "fallback"} for f in row.functions]
    return [(identifier(f), f"aten::{f.func.name}") for f in sorted(functions, key=identifier)]


def ids_header(rows: list[Row]) -> str:
    found = operators(rows)
    members = "\n".join(f"  {name}," for name, _ in found)
    return f"""{NOTE}#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/export.h"

namespace npu::aten {{

enum class OpId : uint16_t {{
{members}
}};
inline constexpr size_t kOperatorCount = {len(found)};

NPU_API const char* operator_name(OpId op);  // "aten::add.Tensor"
const char* wait_cause(OpId op);             // why a synchronous operator has to wait

}}  // namespace npu::aten
"""


def ids_source(rows: list[Row]) -> str:
    names = "\n".join(f'      "{name}",' for _, name in operators(rows))
    waiting = [row for row in rows if "synchronous" in row.route]
    causes = "\n".join(f'    case OpId::{identifier(f)}: return "{row.why}";' for row in waiting for f in row.functions)
    return f"""{NOTE}#include "op_ids.h"

namespace npu::aten {{

const char* operator_name(OpId op) {{
  static constexpr const char* names[kOperatorCount] = {{
{names}
  }};
  return names[static_cast<size_t>(op)];
}}

const char* wait_cause(OpId op) {{
  switch (op) {{
{causes}
    default: return "";
  }}
}}

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
    body = "\n".join(text for text in definitions if text)
    registrations = "\n".join(f"  {line}" for line in registered)
    return f"""{NOTE}#include "aten/ops/pch.h"

{include_lines}

namespace npu::aten {{
namespace {{

{body}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {{
{registrations}
}}

}}  // namespace
}}  // namespace npu::aten
"""

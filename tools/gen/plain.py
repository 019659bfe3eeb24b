"""C++ of operators that are not structured: by a shape rule, in place, by PyTorch's native function, or waiting."""

import re

from torchgen.api import cpp
from torchgen.api.types import CppSignatureGroup, NativeSignature
from torchgen.context import native_function_manager
from torchgen.model import Argument, NativeFunction, SchemaKind

from gen.schema import identifier, read_type, root_name
from gen.structured import device_check, name_rows
from gen.table import ENGINES, Row


def headers(row: Row) -> list[str]:
    root = root_name(row.functions[0])
    if "native" in row.route:
        return [f"ATen/ops/{root}_native.h"]
    if "library" in row.route and row.call in (None, "functional"):
        return [f"ATen/ops/{root}_cpu_dispatch.h"]
    return []


def generate(row: Row) -> str:
    if row.route == ["synchronous"]:
        return ""
    parts = []
    for function in row.functions:
        with native_function_manager(function):
            parts.append(native(row, function) if "native" in row.route else library(row, function))
    return "\n".join(parts)


def registrations(row: Row) -> list[str]:
    if row.route == ["synchronous"]:
        boxed = "torch::CppFunction::makeFromBoxedFunction<&run_synchronous<op::{}>>()"
        return [f'm.impl("{f.func.name}", {boxed.format(identifier(f))});' for f in row.functions]
    return [f'm.impl("{f.func.name}", TORCH_FN({identifier(f)}));' for f in row.functions]


def native(row: Row, function: NativeFunction) -> str:
    """PyTorch's native function on npu tensors: it composes other operators, so nothing crosses here."""
    kernel = row.call or row.cpu_kernels[str(function.func.name)]
    signature = NativeSignature(function.func, prefix="", symint=kernel.endswith("_symint"))
    inputs = [binding.name for binding in signature.arguments()]
    lines = [f"OpScope scope(op::{identifier(function)}, Route::kLibrary);"]
    if row.kernel:
        lines += kernel_route(row, function)
    lines.append(f"return at::native::{kernel}({', '.join(inputs)});")
    return definition(signature, function, lines)


def kernel_route(row: Row, function: NativeFunction) -> list[str]:
    inputs = ", ".join(a.name for a in function.func.arguments.flat_non_out)
    counted = "scope.set_route(Route::kKernel);"
    if function.func.kind() is SchemaKind.functional:
        attempt = f"if (at::Tensor out; kernel_route::{row.kernel}({inputs}, out)) {{"
        return [attempt, f"  {counted}", "  return out;", "}"]
    out = [a.name for a in function.func.arguments.out] or ["self"]
    return [f"if (kernel_route::{row.kernel}({inputs}, {out[0]})) {{", f"  {counted}", f"  return {out[0]};", "}"]


def library(row: Row, function: NativeFunction) -> str:
    signature = NativeSignature(function.func, prefix="", symint=False)
    new_results = any(result.annotation is None for result in function.func.returns)
    makes_outputs = new_results or function.func.kind() is SchemaKind.out
    if makes_outputs and not row.shape:
        raise ValueError(f"{function.func.name}: the row needs a shape rule")
    outs = output_names(row, function) if makes_outputs else []
    inputs = list(function.func.arguments.flat_non_out)
    name = identifier(function)
    task = f'make_task("aten::{function.func.name}", run_{name}, {ENGINES[row.engine]}{row.kernel_flags})'
    parts = [names(row, inputs, outs, name), run(row, function, inputs, outs, name)]
    parts.append(f"constexpr TaskInfo task_{name} = {task};\n")
    lines = [*wait_for_size(row, function), f"OpScope scope(op::{name}, Route::kLibrary);"]
    lines += [*device_check(function, name), *row.check_call]
    rule, _, operands = (row.shape or "").partition("(")
    if rule.endswith("broadcast") and function.func.kind() is SchemaKind.inplace:
        lines.append(f"checks::fits_in_place({operands};")
    if row.kernel:
        lines += kernel_route(row, function)
    if makes_outputs:
        given = ", ".join(f"&{a.name}" for a in function.func.arguments.out)
        variant = f"(Variant::kOut, {{{given}}})" if given else ""
        lines.append(f"Outputs<{len(outs)}> outputs{variant};")
        lines += try_unusual(row, function, len(outs)) if given else [f"outputs.set_all({shape_rule(row)});"]
    if row.casts:
        lines.append("warn_of_lost_parts(self, outputs.get(0));")
    lines += pack(row, inputs, len(outs), name)
    if function.func.arguments.out:
        lines.append("outputs.finish();")
    lines.append(f"return {returned(function, len(outs))};")
    return "\n".join([*parts, definition(signature, function, lines)])


def wait_for_size(row: Row, function: NativeFunction) -> list[str]:
    """Without the argument that tells the size of its result the operator is a synchronous one."""
    if row.size is None:
        return []
    schema = f'"aten::{function.func.name.name}", "{function.func.name.overload_name}"'
    arguments = ", ".join(a.name for a in function.func.arguments.flat_all)
    call = f"call_synchronous<op::{identifier(function)}>({schema}, c10::impl::boxArgs({arguments}))"
    return [f"if (!{row.size}) return {call};"]


def try_unusual(row: Row, function: NativeFunction, outs: int) -> list[str]:
    """Outputs of the caller's: what is to become of those of another dtype or size is asked of the CPU kernel."""
    name, overload = function.func.name.name, function.func.name.overload_name
    arguments = ", ".join(a.name for a in function.func.arguments.flat_all)
    stack = f"c10::impl::boxArgs({arguments})"
    trial = f'try_on_host("aten::{name}", "{overload}", StandIn::{row.stand_in}, {outs}, {stack})'
    return [
        f"const auto specs = {shape_rule(row)};",
        f"if (outputs.unusual(specs)) [[unlikely]] outputs.settle({trial});",
        "outputs.set_all(specs);",
    ]


def shape_rule(row: Row) -> str:
    """The column `shape`, with its functions qualified."""
    return re.sub(r'(?<![\w:."])(\w+)\(', r"shapes::\1(", row.shape or "")


def definition(signature: NativeSignature, function: NativeFunction, lines: list[str]) -> str:
    body = "\n  ".join(line for line in lines if line and line != "return ;")
    return f"{signature.defn(name=identifier(function))} {{\n  {body}\n}}\n"


def output_names(row: Row, function: NativeFunction) -> list[str]:
    if function.func.arguments.out:
        return [a.name for a in function.func.arguments.out]
    inputs = {a.name for a in function.func.arguments.flat_non_out}
    found = [name if name != "result" else "out" for name in cpp.return_names(function)]
    return [f"{name}_out" if name in inputs else name for name in found]


def names(row: Row, inputs: list[Argument], outs: list[str], name: str) -> str:
    rows = []
    for a in inputs:
        written = a.is_write or a.name in row.writes
        rows.append(f'{{"{a.name}"{", Operand::Access::kReadWrite" if written else ""}}}')
    outputs = name_rows([], outs, False)
    return f"constexpr ArgumentName names_{name}[] = {{{', '.join(rows + ([outputs] if outputs else []))}}};\n"


def run(row: Row, function: NativeFunction, inputs: list[Argument], outs: list[str], name: str) -> str:
    lines = []
    for a in inputs:
        mutable = "" if a.is_write and str(a.type) == "Tensor" else "const "
        lines.append(f"{mutable}auto {a.name} = in.read<{read_type(a)}>();")
    lines += [f"at::Tensor {out} = in.read_output();" for out in outs]
    lines += call(row, function, [a.name for a in inputs], outs)
    body = "\n    ".join(lines)
    return f"""\
void run_{name}(const TaskContext& context, const void* block) {{
  run_library_task{"<true>" if row.serial else ""}(context, block, [&](ArgumentReader& in) {{
    {body}
  }});
}}
"""


def call(row: Row, function: NativeFunction, inputs: list[str], outs: list[str]) -> list[str]:
    if row.call not in (None, "functional"):
        name, _, first = row.call.partition("(")
        return [f"tasks::{name}({', '.join([*filter(None, [first[:-1]]), *inputs, *outs])});"]
    target = row.out_function if outs and row.out_function is not None and row.call is None else None
    if target is not None:
        signature = CppSignatureGroup.from_native_function(target, method=False, fallback_binding=False)
        return [f"at::cpu::{signature.most_faithful_signature().name()}({', '.join(inputs + outs)});"]
    source = function
    if outs and row.functional is not None:
        source = row.functional
    signature = CppSignatureGroup.from_native_function(source, method=False, fallback_binding=False)
    expression = f"at::cpu::{signature.most_faithful_signature().name()}({', '.join(inputs)})"
    if not outs:
        return [f"{expression};"]
    if len(outs) == 1:
        return [f"give({expression}, {outs[0]});"]
    gives = [f"give(std::get<{i}>(results), {out});" for i, out in enumerate(outs)]
    return [f"const auto results = {expression};", *gives]


def pack(row: Row, inputs: list[Argument], outs: int, name: str) -> list[str]:
    host = ", HostTensors::kCopyValue" if row.host_tensors else ""
    lines = [f"ArgumentWriter arguments(names_{name}{host});"]
    lines += [f"arguments.write({a.name});" for a in inputs]
    lines += [f"arguments.write_output(outputs.get({i}));" for i in range(outs)]
    if row.host_warns:
        lines.append("arguments.set_silent();")
    return [*lines, f"arguments.launch(task_{name});"]


def returned(function: NativeFunction, outs: int) -> str:
    kind = function.func.kind()
    if outs and kind is not SchemaKind.out:
        taken = [f"outputs.take({i})" for i in range(outs)]
        return taken[0] if outs == 1 else f"std::make_tuple({', '.join(taken)})"
    if kind is SchemaKind.out:
        given = [a.name for a in function.func.arguments.out]
        return given[0] if outs == 1 else f"std::forward_as_tuple({', '.join(given)})"
    return "self" if function.func.returns else ""

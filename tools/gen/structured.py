"""C++ of structured operators: PyTorch's meta function on the host, a CPU kernel or stub in the task."""

import re

from torchgen.api import meta, structured
from torchgen.api.translate import translate
from torchgen.api.types import CppSignatureGroup, NativeSignature
from torchgen.context import native_function_manager
from torchgen.model import Argument, DeviceCheckType, NativeFunction, NativeFunctionsGroup, SchemaKind

from gen.schema import identifier, read_type, root_name, stub_headers
from gen.table import ENGINES, Row

VARIANTS = {SchemaKind.functional: "kFunctional", SchemaKind.inplace: "kInplace", SchemaKind.out: "kOut"}


def headers(row: Row) -> list[str]:
    root = root_name(row.functions[0])
    found = [f"ATen/ops/{root}_meta.h", f"ATen/ops/{root}_cpu_dispatch.h"]
    if row.stub:
        found.append(stub_headers()[row.stub_name])
    return found


def generate(row: Row) -> str:
    group = row.group
    assert group is not None
    with native_function_manager(group.out):
        parts = [names(row, group), library_run(row, group), iterator_run(row, group), launch(row, group)]
    for function in row.functions:
        with native_function_manager(function):
            parts.append(wrapper(row, group, function))
    return "\n".join(part for part in parts if part)


def registrations(row: Row) -> list[str]:
    return [f'm.impl("{f.func.name}", TORCH_FN({identifier(f)}));' for f in row.functions]


def arguments(group: NativeFunctionsGroup) -> list[Argument]:
    """Schema arguments without the outputs."""
    return list(group.out.func.arguments.flat_non_out)


def outputs(group: NativeFunctionsGroup) -> list[Argument]:
    return list(group.out.func.arguments.out)


def prefix(group: NativeFunctionsGroup) -> str:
    return identifier(group.functional)


def name_rows(inputs: list[str], outs: list[str], outputs_first: bool) -> str:
    read = [f'{{"{name}"}}' for name in inputs]
    write = [f'{{"{name}", Operand::Access::kWrite}}' for name in outs]
    return ", ".join(write + read if outputs_first else read + write)


def names(row: Row, group: NativeFunctionsGroup) -> str:
    inputs = [a.name for a in arguments(group)]
    outs = [a.name for a in outputs(group)]
    text = f"constexpr ArgumentName names_{prefix(group)}[] = {{{name_rows(inputs, outs, False)}}};\n"
    if row.stub:
        tensors = [a.name for a in arguments(group) if a.type.is_tensor_like()]
        rows = name_rows([*tensors, *(a.name for a in stub_arguments(row, group))], outs, True)
        text += f"constexpr ArgumentName plan_names_{prefix(group)}[] = {{{rows}}};\n"
    return text


def library_run(row: Row, group: NativeFunctionsGroup) -> str:
    lines = [f"const auto {a.name} = in.read<{read_type(a)}>();" for a in arguments(group)]
    lines += [f"at::Tensor {a.name} = in.read_output();" for a in outputs(group)]
    lines += call(row, group)
    body = "\n    ".join(lines)
    return f"""\
void run_{prefix(group)}(const TaskContext& context, const void* block) {{
  run_library_task(context, block, [](ArgumentReader& in) {{
    {body}
  }});
}}
"""


def call(row: Row, group: NativeFunctionsGroup) -> list[str]:
    """The CPU kernel writes the outputs itself; one that resizes them as scratch is called in its functional form."""
    inputs = ", ".join(a.name for a in arguments(group))
    outs = [a.name for a in outputs(group)]
    if row.call != "functional":
        signature = CppSignatureGroup.from_native_function(group.out, method=False, fallback_binding=False)
        return [f"at::cpu::{signature.most_faithful_signature().name()}({inputs}, {', '.join(outs)});"]
    signature = CppSignatureGroup.from_native_function(group.functional, method=False, fallback_binding=False)
    function = f"at::cpu::{signature.most_faithful_signature().name()}({inputs})"
    if len(outs) == 1:
        return [f"{outs[0]}.copy_({function});"]
    results = [f"{outs[i]}.copy_(std::get<{i}>(results));" for i in range(len(outs))]
    return [f"const auto results = {function};", *results]


def stub_arguments(row: Row, group: NativeFunctionsGroup) -> list[Argument]:
    """The schema arguments that the stub's argument list mentions."""
    words = set(re.findall(r"\w+", row.stub_arguments))
    return [a for a in arguments(group) if a.name in words]


def iterator_run(row: Row, group: NativeFunctionsGroup) -> str:
    if not row.stub:
        return ""
    lines = ["using namespace at::native;", "ArgumentReader in(context, block);", "const Plan plan(in);"]
    lines += [f"const auto {a.name} = in.read<{read_type(a)}>();" for a in stub_arguments(row, group)]
    lines.append(f"plan.run({row.stub_name}{', ' if row.stub_arguments else ''}{row.stub_arguments});")
    body = "\n  ".join(lines)
    return f"void iterate_{prefix(group)}(const TaskContext& context, const void* block) {{\n  {body}\n}}\n"


def launch(row: Row, group: NativeFunctionsGroup) -> str:
    name = prefix(group)
    parameters = ", ".join(binding.defn() for binding in structured.meta_arguments(group))
    host = ", HostTensors::kCopyValue" if row.host_tensors else ""
    lines = []
    if row.stub:
        kind = {"same": "kSame", "bool": "kBool"}[row.output]
        floating = "true" if row.dtypes == "floating" else "false"
        lines += [
            f"ArgumentWriter plan(plan_names_{name});",
            f"if (write_plan(op, {{.output = OutputType::{kind}, .floating_only = {floating}}}, plan)) {{",
            *[f"  plan.write({a.name});" for a in stub_arguments(row, group)],
            "  plan.launch(tasks.iterator);",
            "  return Route::kIterator;",
            "}",
        ]
    lines.append(f"ArgumentWriter arguments(names_{name}{host});")
    lines += [f"arguments.write({a.name});" for a in arguments(group)]
    lines += [f"arguments.write_output(op.outputs.get({i}));" for i in range(len(outputs(group)))]
    if row.host_warns:
        lines.append("arguments.set_silent();")
    lines += ["arguments.launch(tasks.library);", "return Route::kLibrary;"]
    body = "\n  ".join(lines)
    return f"""\
using Op_{name} = StructuredOp<at::meta::structured_{meta.name(group)}, {len(outputs(group))}>;

Route launch_{name}(const Tasks& tasks, Op_{name}& op, {parameters}) {{
  {body}
}}
"""


def wrapper(row: Row, group: NativeFunctionsGroup, function: NativeFunction) -> str:
    name = identifier(function)
    kind = function.func.kind()
    signature = NativeSignature(function.func, prefix="", symint=False)
    context = list(signature.arguments())
    inputs = ", ".join(e.expr for e in translate(context, structured.meta_arguments(group), method=False))
    outs = ["self"] if kind is SchemaKind.inplace else [a.name for a in function.func.arguments.out]
    lines = [f"OpScope scope(op::{name}, Route::kLibrary);", *kernel_route(row, kind, inputs, outs)]
    lines += device_check(function, name)
    if kind is SchemaKind.functional:
        lines.append(f"Op_{prefix(group)} op;")
    else:
        given = ", ".join(f"&{out}" for out in outs)
        lines.append(f"Op_{prefix(group)} op(Variant::{VARIANTS[kind]}, {{{given}}});")
    lines += [
        f"op.outputs.prefer({row.format}.suggest_memory_format());" if row.format else "",
        f"op.meta({inputs});",
        *row.check_call,
        "warn_of_lost_parts(self, op.outputs.get(0));" if row.casts else "",
        f"scope.set_route(launch_{prefix(group)}(tasks_{name}, op, {inputs}));",
        "op.outputs.finish();" if kind is not SchemaKind.functional else "",
        f"return {returned(group, kind, outs)};",
    ]
    body = "\n  ".join(line for line in lines if line)
    runs = f"run_{prefix(group)}, {ENGINES[row.engine]}{row.kernel_flags}"
    iterate = f"iterate_{prefix(group)}" if row.stub else "nullptr"
    return f"""\
constexpr Tasks tasks_{name} = make_tasks("aten::{function.func.name}", {iterate}, {runs});

{signature.defn(name=name)} {{
  {body}
}}
"""


def kernel_route(row: Row, kind: SchemaKind, inputs: str, outs: list[str]) -> list[str]:
    if not row.kernel:
        return []
    counted = "scope.set_route(Route::kKernel);"
    if kind is SchemaKind.functional:
        attempt = f"if (at::Tensor out; kernel_route::{row.kernel}({inputs}, out)) {{"
        return [attempt, f"  {counted}", "  return out;", "}"]
    return [f"if (kernel_route::{row.kernel}({inputs}, {outs[0]})) {{", f"  {counted}", f"  return {outs[0]};", "}"]


def device_check(function: NativeFunction, name: str) -> list[str]:
    """As on CUDA: operators that build a TensorIterator leave the check to it."""
    if function.device_check is DeviceCheckType.NoCheck:
        return []
    tensors = [a for a in function.func.arguments.flat_all if a.type.is_tensor_like()]
    lines = [f'check_same_device("{name}", "{a.name}", {a.name});' for a in tensors if a.type.is_list_like()]
    plain = [f'{{"{a.name}", {a.name}}}' for a in tensors if not a.type.is_list_like()]
    if len(plain) > 1:
        lines.append(f'check_same_device("{name}", {{{", ".join(plain)}}});')
    return lines


def returned(group: NativeFunctionsGroup, kind: SchemaKind, outs: list[str]) -> str:
    if kind is SchemaKind.functional:
        taken = [f"op.outputs.take({i})" for i in range(len(outputs(group)))]
        return taken[0] if len(taken) == 1 else f"std::make_tuple({', '.join(taken)})"
    return outs[0] if len(outs) == 1 else f"std::forward_as_tuple({', '.join(outs)})"

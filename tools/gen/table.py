"""Reads csrc/aten/ops/npu_functions.yaml and holds it against PyTorch's operator list."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from torchgen.model import NativeFunction, NativeFunctionsGroup, SchemaKind

from gen.schema import Schemas

ROUTES = ("view", "kernel", "iterator", "library", "native", "synchronous", "composite", "fallback")
KERNEL_FLAGS = {None: "", "sizes": ", kChecksSizes", "dtypes": ", kOfOneDtype"}  # column `rehearse`
STAND_INS = {"zeros": "kZeros", "ones": "kOnes"}
ENGINES = {"vector": "kVectorEngine", "cube": "kCubeEngine", "mixed": "kMixedEngine", "rng": "kRngEngine"}
COLUMNS = {
    "func", "route", "engine", "stub", "dtypes", "output", "kernel", "call", "shape", "host_tensors", "writes", "forms",
    "size", "casts", "check", "serial", "file", "format", "why", "rehearse", "silent", "stand_ins",
}  # fmt: skip


@dataclass
class Row:
    """One line of the table, with the operators it covers."""

    func: str
    route: list[str]
    engine: str = "vector"
    stub: str | None = None  # CPU stub of the iterator route, with its arguments: "add_stub(alpha)"
    dtypes: str = "all"  # of the iterator route: all or floating
    output: str = "same"  # dtype of the stub's output: same as the inputs, or bool
    kernel: str | None = None  # function of kernel_route.h
    call: str | None = None  # what the task calls; default at::cpu::<op>_outf
    shape: str | None = None  # function of shape_rules.h: what outputs are, new or in place
    check: str | None = None  # function of argument_checks.h; structured: called after the meta function
    serial: bool = False  # elements may be written twice: one thread, or the result would depend on timing
    casts: bool = False  # the kernel casts `self` to the dtype of the output: complex numbers may lose a part
    silent: bool = False  # the host, asked for shapes, gives the warnings that the kernel would give again
    size: str | None = None  # the argument that tells the size of the result; without it the host waits
    format: str | None = None  # structured: the outputs take the suggested memory format of this argument
    rehearse: str | None = None  # what rehearsal.h must know: the kernel checks sizes, or refuses mixed dtypes at once
    stand_ins: str = "zeros"  # what a kernel is tried on that is asked about given outputs: zeros or ones
    host_tensors: bool = False  # CPU tensors with dimensions are welcome; their values are copied
    file: str | None = None  # where a hand-written registration is
    why: str | None = None
    writes: list[str] = field(default_factory=list)  # arguments that are written though the schema does not say so
    forms: list[str] | None = None  # operators to register; default: those of the group that PyTorch does not compose
    functions: list[NativeFunction] = field(default_factory=list)
    group: NativeFunctionsGroup | None = None
    cpu_kernels: dict[str, str] = field(default_factory=dict)  # operator -> function in at::native
    out_function: NativeFunction | None = None  # with a CPU kernel
    functional: NativeFunction | None = None  # with a CPU kernel

    @property
    def stub_name(self) -> str:
        return (self.stub or "").partition("(")[0]

    @property
    def stub_arguments(self) -> str:
        return (self.stub or "").partition("(")[2][:-1]

    @property
    def check_call(self) -> list[str]:
        return [f"checks::{self.check};"] if self.check else []

    @property
    def host_warns(self) -> bool:
        """Whether the host gives the warnings that the kernel would give again."""
        return self.casts or self.silent

    @property
    def kernel_flags(self) -> str:
        return KERNEL_FLAGS[self.rehearse]

    @property
    def stand_in(self) -> str:
        """What a CPU kernel gets through with: LAPACK counts pivots from 1 and finds unit matrices regular."""
        return "kUnitMatrices" if self.engine == "mixed" else STAND_INS[self.stand_ins]

    @property
    def structured(self) -> bool:
        return self.group is not None and self.group.structured


def load(path: Path, schemas: Schemas) -> list[Row]:
    rows = []
    seen: dict[str, str] = {}
    for entry in yaml.safe_load(path.read_text()):
        row = make_row(entry, schemas)
        for function in row.functions:
            name = str(function.func.name)
            if name in seen:
                raise ValueError(f"{path.name}: {name} is covered by the rows {seen[name]} and {row.func}")
            seen[name] = row.func
        rows.append(row)
    return rows


def check_apart(rows: list[Row], others: set[str]) -> None:
    """No operator has two kernels for dense tensors: one here, and one of `others`, those of npu_layouts.yaml."""
    twice = sorted(others & {str(f.func.name) for row in rows for f in row.functions})
    if twice:
        raise ValueError(f"npu_functions.yaml and npu_layouts.yaml both register {', '.join(twice)}")


def make_row(entry: dict[str, Any], schemas: Schemas) -> Row:
    name = entry.get("func", "<a row without func>")
    unknown = set(entry) - COLUMNS
    if unknown:
        raise ValueError(f"{name}: unknown columns {sorted(unknown)}; known are {sorted(COLUMNS)}")
    if name not in schemas.functions:
        raise ValueError(f"{name} is not an operator of this PyTorch")
    entry = dict(entry)
    route = entry.pop("route")
    row = Row(route=[route] if isinstance(route, str) else list(route), **entry)
    for part in row.route:
        if part not in ROUTES:
            raise ValueError(f"{name}: unknown route {part}; known are {', '.join(ROUTES)}")
    if row.engine not in ENGINES:
        raise ValueError(f"{name}: unknown engine {row.engine}; known are {', '.join(ENGINES)}")
    if row.rehearse not in KERNEL_FLAGS:
        raise ValueError(f"{name}: unknown way to rehearse: {row.rehearse}; known are sizes and dtypes")
    if row.stand_ins not in STAND_INS:
        raise ValueError(f"{name}: unknown stand-ins {row.stand_ins}; known are {', '.join(STAND_INS)}")
    if "synchronous" in row.route and not row.why:
        raise ValueError(f"{name}: a synchronous operator says why it must wait")
    if row.size and row.route != ["library", "synchronous"]:
        raise ValueError(f"{name}: with `size` the routes are library and synchronous")
    attach_functions(row, schemas)
    return row


def attach_functions(row: Row, schemas: Schemas) -> None:
    """A row names a group by one form and covers all forms that need a kernel, unless `forms` lists them."""
    group = schemas.groups.get(row.func)
    if group is not None and group.structured:
        row.group = group
        row.functions = list(group.functions())
        return
    if row.forms is not None:
        row.functions = [schemas.functions[name] for name in row.forms]
    else:
        members = list(group.functions()) if group is not None else [schemas.functions[row.func]]
        row.functions = [f for f in members if not schemas.composite(f) or str(f.func.name) == row.func]
    complete(row, schemas)


def complete(row: Row, schemas: Schemas) -> None:
    """Finds the CPU kernels that the forms of a row can call."""
    group = schemas.groups.get(row.func)
    for function in group.functions() if group else row.functions:
        kernel = schemas.cpu_kernel(function)
        native = kernel or schemas.composite_kernel(function)
        if native:
            row.cpu_kernels[str(function.func.name)] = native
        if kernel and function.func.kind() is SchemaKind.out:
            row.out_function = function
        elif kernel and function.func.kind() in (SchemaKind.functional, SchemaKind.mutable):
            row.functional = function

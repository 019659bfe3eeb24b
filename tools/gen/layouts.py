"""Operators of tensors that are not strided: a route for each that PyTorch registers for the CPU (npu_layouts.yaml)."""

import fnmatch
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from torchgen.model import DeviceCheckType, DispatchKey, NativeFunction

from gen.schema import Schemas

DENSE = "Dense"
ROUTES = ("native", "synchronous", "own", "excluded")


@dataclass
class LayoutOperator:
    """One operator of one dispatch key."""

    key: str  # Sparse, SparseCsr, NestedTensor, Quantized or Dense
    name: str
    route: str  # native, synchronous, own (written by hand) or excluded
    why: str | None  # the reason of a route that is not native; what a native one waits for, if it does
    metadata: bool  # it reads nothing but metadata
    one_device: bool  # its tensors have to be on one device


def load(path: Path, schemas: Schemas) -> list[LayoutOperator]:
    found = []
    for entry in yaml.safe_load(path.read_text()):
        unknown = set(entry) - {"key", "why", "waits", *ROUTES}
        if unknown:
            raise ValueError(f"{path.name}: {entry['key']}: unknown columns {sorted(unknown)}")
        found += operators_of(entry, schemas)
    return found


def dispatch_key(key: str, device: str) -> str:
    return device if key == DENSE else key + device


def operators_of(entry: dict[str, Any], schemas: Schemas) -> list[LayoutOperator]:
    key = entry["key"]
    cpu, cuda = (schemas.indices[DispatchKey.parse(dispatch_key(key, device))] for device in ("CPU", "CUDA"))
    exceptions = [(pattern, route, group["why"]) for route in ROUTES for group in entry.get(route, [])
                  for pattern in group["operators"]]  # fmt: skip
    waits = {name: group["why"] for group in entry.get("waits", []) for name in group["operators"]}
    named = {pattern for pattern, _, _ in exceptions}
    found, used = [], set()
    for name, function in schemas.functions.items():
        kernel, shared = cpu.get_kernel(function), cuda.get_kernel(function)
        if kernel is None and name not in named:  # PyTorch composes it; one that reads memory itself is named
            continue
        one_function = kernel is not None and shared is not None and shared.kernel == kernel.kernel
        route, why = ("native", None) if one_function else ("synchronous", entry.get("why"))
        if key == DENSE:
            route = "other"
        for pattern, wanted, reason in exceptions:
            if fnmatch.fnmatchcase(name, pattern):
                route, why = wanted, reason
                used.add(pattern)
        if route in ROUTES:
            reason = waits.pop(name, None) if route == "native" else why
            found.append(LayoutOperator(key, name, route, reason, reads_metadata(function), one_device(function)))
    if idle := named - used:
        raise ValueError(f"{key}: no operator is named {', '.join(sorted(idle))}")
    if waits:
        raise ValueError(f"{key}: waits: no native operator is named {', '.join(sorted(waits))}")
    return found


def reads_metadata(function: NativeFunction) -> bool:
    """Operators that give views, numbers or flags."""
    returns = function.func.returns
    return function.is_view_op or (bool(returns) and not any(result.type.is_tensor_like() for result in returns))


def one_device(function: NativeFunction) -> bool:
    tensors = [a for a in function.func.arguments.flat_all if a.type.is_tensor_like()]
    return len(tensors) > 1 and function.device_check is not DeviceCheckType.NoCheck


def registration(operator: LayoutOperator) -> str:
    arguments = f'"aten::{operator.name}"'
    if operator.route == "native":
        route = "Route::kView" if operator.metadata else "Route::kLibrary"
        check = ", DeviceCheck::kSame" if operator.one_device else ""
        arguments += f", {route}, c10::DispatchKey::{dispatch_key(operator.key, 'CPU')}{check}"
    return f'  m.impl("{operator.name}", {operator.route}({arguments}));'


def source(operators: list[LayoutOperator], note: str) -> str:
    parts = []
    for key in dict.fromkeys(operator.key for operator in operators):
        lines = "\n".join(
            registration(operator)
            for operator in operators
            if operator.key == key and operator.route in ("native", "synchronous")
        )
        parts.append(f"TORCH_LIBRARY_IMPL(aten, {dispatch_key(key, 'PrivateUse1')}, m) {{\n{lines}\n}}\n")
    body = "\n".join(parts)
    return f"""{note}#include "aten/ops/layouts.h"

namespace npu::aten {{
namespace {{

{body}
}}  // namespace
}}  // namespace npu::aten
"""

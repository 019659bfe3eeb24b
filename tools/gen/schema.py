"""PyTorch's operator list, and how its schema types look in our generated C++."""

import os
import re
from functools import cache
from pathlib import Path

import torchgen
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import Argument, BackendIndex, DispatchKey, NativeFunction, NativeFunctionsGroup

# How ArgumentReader reads a schema type; SymInt is int, and a size such as [2] is no part of the type.
READ_TYPES = {
    "Tensor": "at::Tensor",
    "Tensor?": "std::optional<at::Tensor>",
    "Tensor[]": "std::vector<at::Tensor>",
    "Tensor?[]": "c10::List<std::optional<at::Tensor>>",
    "Scalar": "at::Scalar",
    "Scalar?": "std::optional<at::Scalar>",
    "Scalar[]": "std::vector<at::Scalar>",
    "int": "int64_t",
    "int?": "std::optional<int64_t>",
    "int[]": "at::IntArrayRef",
    "int[]?": "at::OptionalIntArrayRef",
    "float": "double",
    "float?": "std::optional<double>",
    "float[]": "at::ArrayRef<double>",
    "float[]?": "std::optional<at::ArrayRef<double>>",
    "bool": "bool",
    "bool?": "std::optional<bool>",
    "bool[2]": "std::array<bool, 2>",
    "bool[3]": "std::array<bool, 3>",
    "str": "std::string_view",
    "str?": "std::optional<std::string_view>",
    "ScalarType": "at::ScalarType",
    "ScalarType?": "std::optional<at::ScalarType>",
    "MemoryFormat?": "std::optional<at::MemoryFormat>",
}


class Schemas:
    """All native functions, their groups (functional, in-place and out= forms) and the CPU kernels."""

    def __init__(self) -> None:
        root = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
        parsed = parse_native_yaml(str(root / "native_functions.yaml"), str(root / "tags.yaml"))
        self.indices: dict[DispatchKey, BackendIndex] = parsed.backend_indices
        self.functions: dict[str, NativeFunction] = {str(f.func.name): f for f in parsed.native_functions}
        self.groups: dict[str, NativeFunctionsGroup] = {}  # by the name of each member
        for group in get_grouped_native_functions(parsed.native_functions):
            if isinstance(group, NativeFunctionsGroup):
                for function in group.functions():
                    self.groups[str(function.func.name)] = group

    def cpu_kernel(self, function: NativeFunction) -> str | None:
        """The name of PyTorch's CPU kernel, or None."""
        metadata = self.indices[DispatchKey.CPU].get_kernel(function)
        return metadata.kernel if metadata else None

    def composite_kernel(self, function: NativeFunction) -> str | None:
        for key in (DispatchKey.CompositeExplicitAutograd, DispatchKey.CompositeImplicitAutograd):
            metadata = self.indices[key].get_kernel(function)
            if metadata:
                return metadata.kernel
        return None

    def composite(self, function: NativeFunction) -> bool:
        """Whether a kernel shared by all backends serves the operator."""
        return function.has_composite_kernel


def read_type(argument: Argument) -> str:
    name = str(argument.type).replace("SymInt", "int").replace("SymBool", "bool")
    if not name.startswith("bool"):
        name = re.sub(r"\[\d+\]", "[]", name)
    if name not in READ_TYPES:
        raise ValueError(f"no task can carry an argument of type {argument.type}")
    return READ_TYPES[name]


def identifier(function: NativeFunction) -> str:
    """add.Tensor -> add_Tensor: the name of an operator in C++, also of its counters."""
    return str(function.func.name).replace(".", "_")


def root_name(function: NativeFunction) -> str:
    """add_.Tensor -> add: the name of its per-operator headers."""
    return str(function.root_name)


@cache
def stub_headers() -> dict[str, str]:
    """CPU stub -> the header that declares it."""
    native = Path(torchgen.__file__).parent.parent / "torch" / "include" / "ATen" / "native"
    found: dict[str, str] = {}
    for folder in ("", "cpu"):
        for header in sorted(os.listdir(native / folder)):
            if header.endswith(".h"):
                text = (native / folder / header).read_text()
                for stub in re.findall(r"DECLARE_DISPATCH\((?:[^;]|\n)*?,\s*(\w+)\s*\)", text):
                    found.setdefault(stub, str(Path("ATen/native") / folder / header))
    return found

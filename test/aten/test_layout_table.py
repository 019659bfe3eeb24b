"""npu_layouts.yaml against what operators on sparse, nested and quantized tensors do: which make the host wait."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from gen import layouts  # noqa: E402
from gen.schema import Schemas  # noqa: E402


def coo(coalesced: bool = True) -> torch.Tensor:
    x = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.rand(3), (4, 4)).to("npu")
    return x.coalesce() if coalesced else x


def csr() -> torch.Tensor:
    return dense().to_sparse_csr()


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.rand(2, 4), torch.rand(3, 4)], device="npu")


def quantized() -> torch.Tensor:
    return torch.quantize_per_tensor(dense(), 0.5, 3, torch.quint8)


def dense() -> torch.Tensor:
    return torch.rand(4, 4, device="npu")


# (operator, key, its input, the call)
WAITING = [
    ("add.Tensor", "Sparse", coo, lambda x: x + x),
    ("mul.Tensor", "Sparse", coo, lambda x: x * x),
    ("mm", "Sparse", coo, lambda x: x @ x),
    ("_to_dense", "Sparse", coo, lambda x: x.to_dense()),
    ("narrow_copy", "Sparse", coo, lambda x: x.narrow_copy(0, 1, 2)),
    ("permute", "Sparse", coo, lambda x: x.permute(1, 0)),
    ("sin", "Sparse", lambda: coo(False), lambda x: x.sin()),
    ("relu", "Sparse", lambda: coo(False), lambda x: x.relu()),
    ("_to_sparse_csr", "Sparse", lambda: coo(False), lambda x: x.to_sparse_csr()),
    ("mm", "SparseCsr", csr, lambda x: x @ x),
    ("select.int", "SparseCsr", csr, lambda x: x.select(0, 1)),
    ("matmul", "NestedTensor", nested, lambda x: x @ x.transpose(1, 2)),
    ("max.dim", "Quantized", quantized, lambda x: x.max(1)),
    ("fill_.Scalar", "Quantized", quantized, lambda x: x.fill_(1.0)),
    ("_to_sparse", "Dense", dense, lambda x: x.to_sparse()),
    ("_to_sparse_csr", "Dense", dense, lambda x: x.to_sparse_csr()),
    ("_nested_from_padded", "Dense", dense, lambda x: torch._nested_from_padded(x[None], torch.tensor([[2, 4]]))),
]
GOING_ON = [
    ("neg", "Sparse", lambda: coo(False), lambda x: x.neg()),
    ("cat", "Sparse", coo, lambda x: torch.cat([x, x])),
    ("clone", "Sparse", coo, lambda x: x.clone()),
    ("unsqueeze", "Sparse", coo, lambda x: x.unsqueeze(0)),
    ("sin", "SparseCsr", csr, lambda x: x.sin()),
    ("mul.Scalar", "SparseCsr", csr, lambda x: x * 2),
    ("_to_dense", "SparseCsr", csr, lambda x: x.to_dense()),
    ("_softmax", "NestedTensor", nested, lambda x: x.softmax(-1)),
    ("cat", "NestedTensor", nested, lambda x: torch.cat([x, x])),
    ("linear", "NestedTensor", nested, lambda x: torch.nn.functional.linear(x, torch.ones(5, 4, device="npu"))),
    ("clone", "Quantized", quantized, lambda x: x.clone()),
    ("view", "Quantized", quantized, lambda x: x.view(16)),
]


@cache
def native() -> dict[tuple[str, str], str | None]:
    """What each native operator waits for, as the table says."""
    operators = layouts.load(ROOT / "csrc" / "aten" / "ops" / "npu_layouts.yaml", Schemas())
    return {(operator.name, operator.key): operator.why for operator in operators if operator.route == "native"}


def waits(make: Callable[[], torch.Tensor], call: Callable[[torch.Tensor], object]) -> bool:
    x = make()
    torch.npu.set_sync_debug_mode("error")
    try:
        call(x)
    except RuntimeError as error:
        assert "synchronizing NPU operation" in str(error)
        return True
    finally:
        torch.npu.set_sync_debug_mode("default")
    return False


@pytest.mark.parametrize(("name", "key", "make", "call"), [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in WAITING])
def test_the_table_names_what_waits_inside(name, key, make, call):
    assert native()[name, key] and waits(make, call)


@pytest.mark.parametrize(("name", "key", "make", "call"), [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in GOING_ON])
def test_the_table_names_nothing_else(name, key, make, call):
    assert native()[name, key] is None and not waits(make, call)


def test_a_wait_of_no_native_operator_is_an_error():
    entry = {"key": "Sparse", "waits": [{"why": "nothing", "operators": ["abs", "nosuch", "coalesce"]}]}
    with pytest.raises(ValueError, match=r"Sparse: waits: no native operator is named coalesce, nosuch"):
        layouts.operators_of(entry, Schemas())

"""Binary operators of op_db over two dtypes: values, promotion, strides and refusals are the CPU's.

op_db's own samples have one dtype. Here every pair of dtypes meets, with the extreme values of each, and with operands
that lie in memory in any way: on the CPU an operand of another dtype than the common one is copied, which shows in the
strides of the result. A few operators run in every test run, all of them in the long sweep.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import pytest
import torch
from compare import matches, on_device
from exceptions import exceptions
from outcomes import Differences
from test_references import quietly, run
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, SampleInput

pytestmark = pytest.mark.usefixtures("like_small_tasks")

SKIPPED = exceptions("mixed_dtypes", "skipped")
OPERATORS = [op for op in op_db if isinstance(op, BinaryUfuncInfo) and not matches(op.full_name, SKIPPED)]
QUICK = ("div.no_rounding_mode", "ldexp", "pow", "ge", "remainder")
DTYPES = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip
LAID_OUT = (torch.int64, torch.float32, torch.complex64)  # second operands that lie in memory in any way
INFINITY, NAN = float("inf"), float("nan")
EXTREMES = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 7.5, 1e-5, 1e-30, 1e30, -1e30, 127.0, -128.0, 255.0),
    *(200.0, -20.0, -1100.0, 3e4, 65504.0, INFINITY, -INFINITY, NAN),
)


def extremes(dtype: torch.dtype, backwards: bool = False) -> torch.Tensor:
    order = -1 if backwards else 1
    if dtype.is_floating_point or dtype.is_complex:
        return torch.tensor(EXTREMES[::order], dtype=torch.float64).to(dtype)
    if dtype is torch.bool:
        return torch.arange(len(EXTREMES)) % 2 == backwards
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    small = [0, 1, 2, 3, 5, 7, 9, 12, 17, 31, 33, 63, 64, 100, 120]
    return torch.tensor([*small, most, most - 1, most // 2, least, least + 1, 1, 0][::order], dtype=dtype)


def laid_out(dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """Tensors that broadcast with each other, dense and not."""

    def ones(*sizes: int) -> torch.Tensor:
        return torch.ones(sizes, dtype=dtype)

    yield ones(2, 3, 4)
    yield ones(4, 2, 3).permute(1, 2, 0)
    yield ones(1, 3, 4).expand(2, 3, 4)
    yield ones(3, 2, 1).expand(3, 2, 4).transpose(0, 1)
    yield ones(3, 2, 8)[:, :, ::2].transpose(0, 1)
    yield ones(3, 1, 8)[:, :, ::2].transpose(0, 1)
    yield ones(1, 4).expand(3, 4)


def samples(left: torch.dtype, right: torch.dtype) -> Iterator[SampleInput]:
    a, b = extremes(left), extremes(right, backwards=True)
    yield SampleInput(a, b)
    yield SampleInput(a, b[5].clone())
    yield SampleInput(a[7].clone(), b)
    yield SampleInput(a, b[5].item())
    if right in LAID_OUT:
        for operands in itertools.product(laid_out(left), laid_out(right)):
            yield SampleInput(*operands)


def cases() -> list:
    found = []
    for op, dtype in itertools.product(OPERATORS, DTYPES):
        name = f"{op.full_name}-{str(dtype).removeprefix('torch.')}"
        if op.full_name in QUICK and dtype in (torch.int64, torch.float32):
            found.append(pytest.param(op, dtype, True, id=f"{name}-quick"))
        found.append(pytest.param(op, dtype, False, id=name, marks=pytest.mark.conformance))
    return found


def compare(differences: Differences, where: str, what: str, function, sample: SampleInput) -> None:
    differences.compare(where, what, lambda: run(function, sample, "npu"), run(function, sample, "cpu"))


@pytest.mark.parametrize(("op", "dtype", "quick"), cases())
def test_binary(op, dtype, quick, note_operators, record_property):
    note = functools.partial(note_operators, test=f"mixed:{op.full_name}", dtype=str(dtype).removeprefix("torch."))
    differences = Differences()
    with on_device(note):
        for other in (torch.bool, torch.uint8, torch.float32, torch.complex64) if quick else DTYPES:
            for i, sample in enumerate(quietly(samples(dtype, other), None)):
                where = f"{other} {i}"
                compare(differences, where, "functional", op, sample)
                if op.inplace_variant is not None and i == 0:
                    compare(differences, where, "in place", op.inplace_variant, sample)
    if differences.check(record_property) == 0:
        pytest.skip("the CPU refuses every call with this dtype, and so does npu")

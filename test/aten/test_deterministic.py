"""torch.use_deterministic_algorithms, filled memory, and results that do not depend on which thread comes first."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

aten = torch.ops.aten


@pytest.fixture
def deterministic():
    """Switches the mode on: deterministic(warn_only=True)."""
    yield lambda **options: torch.use_deterministic_algorithms(True, **options)
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


# --- Uninitialised memory

QUANTIZED = ("torch.q", "torch.bits")
DTYPES = sorted({v for v in vars(torch).values() if isinstance(v, torch.dtype)}, key=str)
DTYPES = [dtype for dtype in DTYPES if not str(dtype).startswith(QUANTIZED)]
ALLOCATIONS = {
    "empty": lambda dtype, device: torch.empty(3, 4, dtype=dtype, device=device),
    "empty_channels_last": lambda dtype, device: torch.empty(
        2, 3, 4, 5, dtype=dtype, device=device, memory_format=torch.channels_last
    ),
    "empty_strided": lambda dtype, device: torch.empty_strided((3, 4), (8, 2), dtype=dtype, device=device),
    "empty_permuted": lambda dtype, device: torch.empty_permuted((3, 4, 5), (2, 0, 1), dtype=dtype, device=device),
    "empty_like": lambda dtype, device: torch.empty_like(torch.zeros(4, 3, device=device).t(), dtype=dtype),
    "new_empty": lambda dtype, device: torch.zeros(1, device=device).new_empty((3, 4), dtype=dtype),
    "new_empty_strided": lambda dtype, device: torch.zeros(1, device=device).new_empty_strided(
        (3, 4), (1, 3), dtype=dtype
    ),
    "empty_out": lambda dtype, device: torch.empty((3, 4), out=torch.zeros(0, dtype=dtype, device=device)),
    "resize_grow": lambda dtype, device: torch.zeros(3, dtype=dtype, device=device).resize_(3, 4),
    "resize_shrink": lambda dtype, device: torch.zeros(8, dtype=dtype, device=device).resize_(3),
    "resize_channels_last": lambda dtype, device: torch.zeros(3, dtype=dtype, device=device).resize_(
        (1, 2, 3, 4), memory_format=torch.channels_last
    ),
    "resize_as": lambda dtype, device: torch.zeros(3, dtype=dtype, device=device).resize_as_(
        torch.zeros(3, 4, device=device)
    ),
}


def allocated(allocate, dtype: torch.dtype, device: str) -> tuple:
    """Strides and the bytes of the elements; or the error, as some dtypes have no code to fill them with."""
    try:
        tensor = allocate(dtype, device)
        return tensor.stride(), bytes(tensor.cpu().contiguous().view(-1).view(torch.uint8).tolist())
    except NotImplementedError as error:
        return (str(error),)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_uninitialised_memory_is_filled_as_on_the_cpu(dtype, deterministic):
    deterministic()
    for name, allocate in ALLOCATIONS.items():
        assert allocated(allocate, dtype, "npu") == allocated(allocate, dtype, "cpu"), name


def test_memory_is_not_filled_when_that_is_off_or_the_mode_is(deterministic):
    marked = torch.full((1000,), 7.0, device="npu")
    address = marked.data_ptr()
    del marked
    again = torch.empty(1000, device="npu")
    assert again.data_ptr() == address and again[5].item() == 7
    del again
    deterministic()
    torch.utils.deterministic.fill_uninitialized_memory = False
    again = torch.empty(1000, device="npu")
    assert again.data_ptr() == address and again[5].item() == 7


# --- Operators that PyTorch calls not deterministic

ALERTS = {
    "put_": lambda x, i: x.put_(i, torch.ones(2, device=x.device)),
    "put_accumulate": lambda x, i: x.put_(i, torch.ones(2, device=x.device), accumulate=True),
    "put": lambda x, i: x.put(i, torch.ones(2, device=x.device)),
    "put_wrong_index": lambda x, i: x.put_(i.int(), torch.ones(2, device=x.device)),
    "put_overlap": lambda x, i: x.put_(i, x[:2]),
    "max_unpool1d": lambda x, i: F.max_unpool1d(x[:2].view(1, 2), i.view(1, 2), 2),
    "max_unpool2d": lambda x, i: F.max_unpool2d(x[:2].view(1, 1, 2), i.view(1, 1, 2), 2),
    "max_unpool2d_out": lambda x, i: aten.max_unpool2d.out(
        x[:2].view(1, 1, 2), i.view(1, 1, 2), (2, 4), out=torch.empty(0, device=x.device)
    ),
    "max_unpool3d": lambda x, i: F.max_unpool3d(x[:2].view(1, 1, 1, 2), i.view(1, 1, 1, 2), 2),
    "max_unpool3d_wrong_index": lambda x, i: aten.max_unpool3d(
        x.view(1, 1, 1, 6), i.view(1, 1, 1, 2).int(), (2, 2, 2), (1, 1, 1), (0, 0, 0)
    ),
    "index_put": lambda x, i: x.index_put_((i,), torch.ones(2, device=x.device), accumulate=True),
    "scatter_add": lambda x, i: x.scatter_add_(0, i, torch.ones(2, device=x.device)),
    "resize_": lambda x, i: x.resize_(9),
    "histc": lambda x, i: x.histc(3),
}


def outcome(call, device: str) -> tuple[object, list[str]]:
    """Result or error, and what was said about determinism."""
    x, i = torch.arange(6.0).to(device), torch.tensor([0, 2]).to(device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(x, i).nan_to_num().tolist()
        except (RuntimeError, IndexError) as error:
            result = (type(error), str(error))
    return result, [str(w.message) for w in caught if "deterministic" in str(w.message)]


@pytest.mark.parametrize("warn_only", [False, True])
@pytest.mark.parametrize("name", ALERTS)
def test_alerts_are_those_of_the_cpu_and_come_at_the_call(name, warn_only, deterministic):
    deterministic(warn_only=warn_only)
    assert outcome(ALERTS[name], "npu") == outcome(ALERTS[name], "cpu")
    torch.npu.synchronize()


# --- Writes to one place from several threads

N = 200_000  # more than one thread's worth


COLLISIONS = {
    "index_put": lambda zeros, x, i: zeros.index_put((i,), x),
    "index_put_accumulate": lambda zeros, x, i: zeros.index_put((i,), x, accumulate=True),
    "put": lambda zeros, x, i: zeros.put(i, x),
    "put_accumulate": lambda zeros, x, i: zeros.put(i, x, accumulate=True),
    "max_unpool2d": lambda zeros, x, i: F.max_unpool2d(square(x), square(i), 2),
    "max_unpool3d": lambda zeros, x, i: F.max_unpool3d(square(x)[None], square(i)[None], 2),
    "index_add": lambda zeros, x, i: zeros.index_add(0, i, x),
    "scatter": lambda zeros, x, i: zeros.scatter(0, i, x),
    "scatter_add": lambda zeros, x, i: zeros.scatter_add(0, i, x),
    "scatter_reduce": lambda zeros, x, i: zeros.scatter_reduce(0, i, x, "prod"),
    "embedding_dense_backward": lambda zeros, x, i: aten.embedding_dense_backward(
        x[:160_000].view(2500, 64), i[:2500], 1000, -1, False
    ),
    "histc": lambda zeros, x, i: x.histc(50),
}


def square(x: torch.Tensor) -> torch.Tensor:
    return x[: 1 << 16].view(1, 1, 256, 256)


@pytest.mark.parametrize("name", COLLISIONS)
def test_results_do_not_depend_on_which_thread_comes_first(name):
    torch.manual_seed(0)
    x, i = torch.randn(N, device="npu"), torch.randint(0, 1000, (N,), device="npu")
    zeros = torch.zeros(1000, device="npu")
    first = COLLISIONS[name](zeros, x, i).cpu()
    assert all(torch.equal(COLLISIONS[name](zeros, x, i).cpu(), first) for _ in range(4))

"""What the sweeps over PyTorch's own databases share.

Moving arguments to a device, changing their layout, and comparing a call on npu with the same call on the CPU in
values, dtypes, sizes, strides, lazy bits and aliasing.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

WAITS = yaml.safe_load((Path(__file__).parent / "host_waits.yaml").read_text())
# Entries whose values differ because they draw random numbers or are not initialised; all else is compared.
RANDOM = (
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "normal.in_place",
    "normal.number_mean", "normal_.in_place", "rand_like", "randint", "randint_like", "randn", "randn_like", "uniform",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "nn.functional.feature_alpha_dropout.with_train", "pca_lowrank", "svd_lowrank",
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
)  # fmt: skip
DROPOUTS = tuple(f"nn.functional.{name}" for name in ("alpha_dropout", "dropout", "dropout2d", "dropout3d"))
RANDOM_IN_TRAINING = (*DROPOUTS, "nn.functional.multi_head_attention_forward", "nn.functional.rrelu")


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def may_wait(entry: str, mode: str) -> bool:
    """Whether host_waits.yaml names the entry or this mode of it. The entry may be "entry layout"."""
    return any(matches(name, group["entries"]) for group in WAITS for name in (entry, f"{entry} {mode}"))


def draws(entry: str, sample: SampleInput) -> bool:
    """Whether the values of this call are random, or whatever the memory held."""
    name, given = entry.removeprefix("_refs."), sample.kwargs
    if name in RANDOM_IN_TRAINING and given.get("training") is False:
        return False
    if name in DROPOUTS and given.get("p") in (0, 1):
        return False
    return name in (*RANDOM, *RANDOM_IN_TRAINING) or bool(given.get("dropout_p"))


def apart(dtype: torch.dtype, precisions: int) -> dict[str, float]:
    """Tolerances of assert_like() for values that may differ by a few times what the dtype can tell apart."""
    inexact = dtype.is_floating_point or dtype.is_complex
    return dict.fromkeys(("rtol", "atol"), precisions * torch.finfo(dtype).eps if inexact else 0)


def tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Mover:
    """Copies tensors to a device as they lie in memory: views of one storage stay views of one storage.

    Sizes, strides, offsets, lazy bits and requires_grad are kept; tensors of other layouts are left to PyTorch. A
    torch.device becomes the device moved to. What is no CPU tensor stays as it is.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.storages: dict[int, tuple[torch.Tensor, torch.UntypedStorage]] = {}
        self.tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, tree: Any) -> Any:
        return pytree.tree_map(self.one, tree)

    def one(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.device) or (isinstance(leaf, str) and leaf == "cpu"):
            return torch.device(self.device)
        if not isinstance(leaf, torch.Tensor) or not leaf.is_cpu:
            return leaf
        if id(leaf) not in self.tensors:
            move = self.tensor if leaf.layout is torch.strided else self.of_another_layout
            self.tensors[id(leaf)] = (move(leaf), leaf)
        return self.tensors[id(leaf)][0]

    def tensor(self, source: torch.Tensor) -> torch.Tensor:
        moved = torch.empty(0, dtype=source.dtype, device=self.device)
        with torch.no_grad():
            moved.set_(self.storage(source), source.storage_offset(), source.shape, source.stride())
        moved = torch._conj(moved) if source.is_conj() else moved
        moved = torch._neg_view(moved) if source.is_neg() else moved
        return moved.requires_grad_() if source.requires_grad else moved

    def of_another_layout(self, source: torch.Tensor) -> torch.Tensor:
        """On the CPU, jagged tensors stay where they are: copies would not share their offsets any more."""
        moved = source.detach().to(self.device, copy=not source.is_nested)
        return moved.requires_grad_(source.requires_grad)

    def storage(self, source: torch.Tensor) -> torch.UntypedStorage:
        storage = source.untyped_storage()
        key = storage.data_ptr() or id(source)
        if key not in self.storages:
            data = torch.empty(0, dtype=torch.uint8).set_(storage).clone()
            self.storages[key] = (data.to(self.device), storage)
        return self.storages[key][0].untyped_storage()


def as_it_is(sample: SampleInput) -> SampleInput:
    return sample


def noncontiguous(sample: SampleInput) -> SampleInput:
    return sample.noncontiguous()


def permuted(sample: SampleInput) -> SampleInput:
    return laid_out(sample, lambda t: t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t)


def channels_last(sample: SampleInput) -> SampleInput:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return laid_out(sample, lambda t: t.contiguous(memory_format=formats[t.dim()]) if t.dim() in formats else t)


def laid_out(sample: SampleInput, like: Callable) -> SampleInput:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        return like(tensor.detach()).requires_grad_(tensor.requires_grad)

    parts = pytree.tree_map_only(torch.Tensor, change, (sample.input, sample.args, sample.kwargs))
    changed = SampleInput(parts[0], args=parts[1], kwargs=parts[2])
    changed.output_process_fn_grad = sample.output_process_fn_grad
    return changed


def same_layout(one: SampleInput, other: SampleInput) -> bool:
    """Whether a change of layout has left all tensors as they were."""
    pairs = zip(*(tensors((s.input, s.args, s.kwargs)) for s in (one, other)), strict=True)
    return all(a.stride() == b.stride() for a, b in pairs)


LAYOUTS = (noncontiguous, permuted, channels_last)


def layout(tensor: torch.Tensor) -> dict[str, Any]:
    """All of a tensor but its values; strides of dimensions of one element, or of an empty tensor, mean nothing."""
    pairs = list(zip(tensor.shape, tensor.stride(), strict=True))
    return {
        "dtype": tensor.dtype,
        "shape": tuple(tensor.shape),
        "stride": tuple(stride for size, stride in pairs if size > 1) if tensor.numel() else None,
        "storage offset": tensor.storage_offset(),
        "conj bit": tensor.is_conj(),
        "neg bit": tensor.is_neg(),
    }


def parts(tensor: torch.Tensor) -> list[Any]:
    """The strided tensors that a tensor of another layout consists of, and what else tells it from others."""
    if tensor.is_nested:
        return [tensor.values(), tensor.offsets(), tensor.lengths()]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced()]
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    compressed = (tensor.crow_indices, tensor.col_indices) if rows else (tensor.ccol_indices, tensor.row_indices)
    return [*(indices() for indices in compressed), tensor.values(), tensor.shape]


def assert_same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal values, NaN and zeros of each sign where the other has them; one NaN is as good as another."""
    a, e = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (actual, expected))
    torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)
    if e.is_floating_point():
        signs = [torch.signbit(t.float() if t.itemsize == 1 else t) | t.isnan() for t in (a, e)]
        assert torch.equal(*signs), "a zero of another sign"


def assert_like(actual: Any, expected: Any, *, rtol: float = 0, atol: float = 0, values: bool = True) -> None:
    """Two trees of results agree; `values=False` leaves out the values of tensors (random numbers)."""
    for a, e in zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True):
        if not isinstance(e, torch.Tensor):
            assert type(a) is type(e), f"{type(a)} instead of {type(e)}"
            assert not values or a == e or (a != a and e != e), f"{a} instead of {e}"  # one NaN is as good as another
            continue
        assert a.layout == e.layout, f"{a.layout} instead of {e.layout}"
        if e.layout is not torch.strided:
            assert_like(parts(a.detach()), parts(e.detach()), rtol=rtol, atol=atol, values=values)
            continue
        wanted = layout(e)
        for what, found in layout(a).items():
            assert found == wanted[what], f"{what} {found} instead of {wanted[what]}"
        if values and (rtol or atol):
            torch.testing.assert_close(a.detach().cpu(), e.detach(), rtol=rtol, atol=atol, equal_nan=True)
        elif values:
            assert_same_bits(a.detach().cpu(), e.detach())


@contextlib.contextmanager
def on_device(note: Callable[[dict], None]) -> Iterator[None]:
    """Runs a block on npu: no operator of it may fall back. `note` is given the counters of those that were called."""
    torch.npu.synchronize()
    torch.npu.op_stats(reset=True)
    yield
    stats = torch.npu.op_stats(reset=True)
    note(stats)
    fallbacks = [name for name, counts in stats.items() if counts["fallback"]]
    assert not fallbacks, f"operators without a route: {fallbacks}"

"""Operators on more than a million elements, a few of each family, and on lists of 500 tensors; also a program.

    python large_programs.py        prints one JSON object a program, {"program": ..., "digest": ...}, of what npu gives
    python large_programs.py cpu    compares what npu gives in tiles with the CPU instead

The environment says how the device runs (NPU_SIM_WORKERS, NPU_SIM_TILE_ELEMENTS, ...).
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from compare import assert_like, tensors
from digests import digest
from torch.nn import functional

SIDE = 1100  # of a matrix: 1.2 million elements
LIST = 500  # tensors
# Programs that npu runs on one thread, because the kernel's threads add to one element in any order.
ONE_THREAD = ("index_put", "gradients of index")
# Programs that multiply matrices part by part when tasks are cut into tiles: other sizes are added in another order.
PRODUCTS = ("mm", "mm transposed", "addmm", "linear", "gradients")
# Programs whose vector and scalar loops in PyTorch round differently: the scalar one takes the last elements of a tile.
SCALAR_ENDS = ("complex",)
Program = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]

# Of two matrices of SIDE x SIDE and a vector of whole numbers below SIDE, as long as a side.
PROGRAMS: dict[str, Program] = {
    # element by element: own kernels, iterator route, library route; strided, broadcast, mixed and 16-bit operands
    "add": lambda a, b, i: a + b,
    "add alpha": lambda a, b, i: torch.add(a, b, alpha=0.3),
    "exp": lambda a, b, i: a.exp(),
    "maximum": lambda a, b, i: torch.maximum(a, b),
    "gelu": lambda a, b, i: functional.gelu(a),
    "transposed": lambda a, b, i: a.t() * b,
    "strided": lambda a, b, i: a[:, ::2].sin() - b[:, 1::2],
    "broadcast": lambda a, b, i: a / (b[0].abs() + 1),
    "where": lambda a, b, i: torch.where(a > b, a, 0.5),
    "mixed dtypes": lambda a, b, i: a.double() + b.half(),
    "half": lambda a, b, i: a.half() * b.half() + a.half(),
    "integers": lambda a, b, i: (a * 100).long() // ((b * 10).long().abs() + 1),
    "complex": lambda a, b, i: torch.complex(a, b).conj() * torch.complex(b, a),
    "in place": lambda a, b, i: a.clone().mul_(b).clamp_(-1, 1),
    "addcmul": lambda a, b, i: torch.addcmul(a, a, b, value=2),
    # reductions over all, rows, columns
    "sum": lambda a, b, i: [a.sum(), a.sum(0), a.sum(1), a.half().sum(1), a.t().sum(1)],
    "mean var": lambda a, b, i: [a.mean(1), *torch.var_mean(a, 0)],
    "extremes": lambda a, b, i: [a.amax(), *a.max(1), *b.min(0), a.argmax()],
    "norm": lambda a, b, i: [a.norm(), torch.linalg.vector_norm(a, 1, 0)],
    "any all": lambda a, b, i: [(a > 4).any(1), (a > -9).all()],
    "logsumexp": lambda a, b, i: [a.logsumexp(1), a.softmax(1), a.log_softmax(0)],
    "layer_norm": lambda a, b, i: functional.layer_norm(a, (SIDE,), b[0], b[1]),
    "cumulative": lambda a, b, i: [a.cumsum(1), a.cumsum(0), *a.cummax(1)],
    "prod": lambda a, b, i: (1 + a / SIDE).prod(1),
    # copies: contiguous, permuted, cast
    "clone": lambda a, b, i: a.clone(),
    "contiguous": lambda a, b, i: a.t().contiguous(),
    "cast": lambda a, b, i: [a.double(), a.bfloat16(), (a * 100).int(), a > 0],
    "flip roll": lambda a, b, i: [a.flip(1), a.roll(7, 0)],
    "cat": lambda a, b, i: [torch.cat([a, b]), torch.cat([a, b], 1), torch.stack([a, b], 2)],
    "pad": lambda a, b, i: functional.pad(a[None], (1, 2, 3, 4), mode="reflect"),
    # indices
    "index": lambda a, b, i: [a[i], a[:, i], a[i, i.flip(0)]],
    "index_select": lambda a, b, i: [a.index_select(0, i), a.index_select(1, i)],
    "gather": lambda a, b, i: a.gather(1, i.expand(SIDE, SIDE)),
    "scatter": lambda a, b, i: a.scatter(0, i.argsort()[:, None].expand(SIDE, SIDE), b),
    "scatter_add": lambda a, b, i: a.scatter_add(0, i[:, None].expand(SIDE, SIDE), b),
    "index_add": lambda a, b, i: a.index_add(0, i, b),
    "index_put": lambda a, b, i: a.clone().index_put_((i,), b, accumulate=True),
    "masked": lambda a, b, i: [a.masked_fill(b > 0, 1), a[b > 0], (a > 2).nonzero()],
    "embedding": lambda a, b, i: functional.embedding(i.repeat(2), a),
    "sort": lambda a, b, i: [*a.sort(1), *a.topk(5), *a.kthvalue(3)],
    "triangles": lambda a, b, i: [a.tril(), a.triu(2), a.diagonal()],
    # products
    "mm": lambda a, b, i: a @ b,
    "mm transposed": lambda a, b, i: [a.t() @ b, a @ b.t(), a.double() @ b.double()],
    "mm half": lambda a, b, i: a.bfloat16() @ b.bfloat16(),
    "mv": lambda a, b, i: [a @ b[0], a[0].dot(b[0]), torch.outer(a[0], b[0])],
    "addmm": lambda a, b, i: torch.addmm(b, a, b, beta=0.5, alpha=2),
    "bmm": lambda a, b, i: a.view(11, 100, SIDE) @ b.view(11, SIDE, 100),
    "linear": lambda a, b, i: functional.linear(a, b, b[0]),
    "conv2d": lambda a, b, i: functional.conv2d(a.view(11, 4, 250, 110), b[0, :72].view(2, 4, 3, 3)),
    "attention": lambda a, b, i: functional.scaled_dot_product_attention(
        *[t.view(11, 10, 110, 100) for t in (a, b, a)]
    ),
    # gradients
    "gradients": lambda a, b, i: gradients_of(lambda x, y: (functional.gelu(x @ y).softmax(1) * y).sum(), a, b),
    "gradients of index": lambda a, b, i: gradients_of(lambda x, y: (x[i] * y.cumsum(0)).mean(), a, b),
    # lists
    "list of parts": lambda a, b, i: [torch.cat(parts_of(a)), torch.stack([part[:2] for part in parts_of(b)], 1)],
    "list of sums": lambda a, b, i: torch._foreach_norm(torch._foreach_mul(parts_of(a), parts_of(b))),
    "list in place": lambda a, b, i: lerped(parts_of(a), parts_of(b)),
    "split": lambda a, b, i: [part * 2 for part in a[:LIST].unbind()] + [part + 1 for part in b.split(3)],
    "block_diag": lambda a, b, i: torch.block_diag(*(row[:2] for row in a[:LIST])),
}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
STEPS = [(name, way) for name in (*FUSED, "RMSprop", "NAdam") for way in ("forloop", "foreach")]
for step in [*STEPS, *((name, "fused") for name in FUSED)]:
    PROGRAMS[" ".join(step)] = lambda a, b, i, step=step: optimized(*step, parts_of(a), parts_of(b))
RANDOM_PROGRAMS: dict[str, Program] = {
    "uniform": lambda a, b, i: torch.rand_like(a),
    "normal": lambda a, b, i: [torch.randn_like(a), torch.normal(a, b.abs())],
    "whole": lambda a, b, i: [torch.randint_like(a, 1000), torch.bernoulli(b.abs().clamp(max=1))],
    "dropout": lambda a, b, i: functional.dropout(a),
    "samplers": lambda a, b, i: [torch.poisson(a.abs()), torch._standard_gamma(b.abs() + 0.1)],
    "permutation": lambda a, b, i: torch.randperm(a.numel(), device=a.device),
    "multinomial": lambda a, b, i: torch.multinomial(a.abs(), 10),
}


def parts_of(matrix: torch.Tensor) -> list[torch.Tensor]:
    """LIST tensors of different sizes."""
    return [matrix[k, : 300 + k].clone() for k in range(LIST)]


def lerped(a: list[torch.Tensor], b: list[torch.Tensor]) -> list[torch.Tensor]:
    torch._foreach_lerp_(a, b, 0.25)
    torch._foreach_addcdiv_(a, b, torch._foreach_exp(b), 0.1)
    return a


def gradients_of(program: Callable, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    return torch.autograd.grad(program(*leaves), leaves)


def optimized(name: str, way: str, weights: list[torch.Tensor], gradients: list[torch.Tensor]) -> list[torch.Tensor]:
    weights = [weight.requires_grad_() for weight in weights]
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    chosen = {"foreach": way == "foreach"} if way != "fused" else {"fused": True}
    optimizer = getattr(torch.optim, name)(weights, lr=0.1, **chosen)
    for _ in range(2):
        optimizer.step()
    return [weight.detach() for weight in weights]


def inputs(device: str) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(SIDE, SIDE, generator=generator) for _ in range(2))
    return [tensor.to(device) for tensor in (a, b, torch.randint(SIDE, (SIDE,), generator=generator))]


def run(program: Program, device: str) -> Any:
    torch.manual_seed(0)
    return program(*inputs(device))


@contextlib.contextmanager
def threads_of(name: str) -> Iterator[None]:
    """Lets the CPU have as many threads as the tasks of a program have on npu."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if name in ONE_THREAD else threads)
    yield
    torch.set_num_threads(threads)


def rounding(name: str, dtype: torch.dtype) -> float:
    """How far the results of a program may be from the CPU's when its tasks are cut into tiles.

    Products add SIDE products of normal numbers in another order. A partial sum is as large as five times sqrt(SIDE);
    each of SIDE additions rounds it by half its precision, up or down, which adds up to sqrt(SIDE) times as much. Twice
    that, as `addmm` doubles its products. A part of a complex product is the sum of two products of numbers up to five.
    """
    sums = {**dict.fromkeys(PRODUCTS, 5 * SIDE), **dict.fromkeys(SCALAR_ENDS, 2 * 5 * 5)}
    return sums[name] * torch.finfo(dtype).eps if name in sums else 0


def assert_like_cpu(name: str, *, tiled: bool = False) -> None:
    """The same bits, save what tiles change in some programs."""
    with threads_of(name):
        expected = tensors(run(PROGRAMS[name], "cpu"))
    for a, e in zip(tensors(run(PROGRAMS[name], "npu")), expected, strict=True):
        assert_like(a, e, atol=rounding(name, e.dtype) if tiled else 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["cpu"]:
        for name in PROGRAMS:
            assert_like_cpu(name, tiled=True)
            print(name, flush=True)
    else:
        for name, program in {**PROGRAMS, **RANDOM_PROGRAMS}.items():
            print(json.dumps({"case": name, "digest": digest(run(program, "npu"))}), flush=True)

"""torch.func over op_db: vmap and the transforms made of derivatives give on npu what they give on the CPU.

make test runs a few operators, the long sweep all of them.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from compare import assert_like, draws, matches, on_device
from exceptions import exceptions
from modes import moved
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

QUICK = ("index_put", "linalg.cholesky", "nn.functional.layer_norm", "prod", "sort")
SAMPLES = 2
SKIPPED = exceptions("transforms", "skipped")
LARGEST_INPUT = {jacrev: 512, jacfwd: 512, hessian: 128}  # elements; these transforms differentiate once for each

Function = Callable[..., tuple[Tensor, ...]]


def as_function(op: OpInfo, sample: SampleInput, arguments: tuple) -> tuple[Function, list[Tensor]]:
    """The operator as a function of the floating-point tensors among its arguments, and these tensors."""
    leaves, spec = pytree.tree_flatten(arguments)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.is_floating_point()]

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        positional, keywords = pytree.tree_unflatten(filled, spec)
        results = sample.output_process_fn_grad(op(*positional, **keywords))
        floating = (
            leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, Tensor) and leaf.is_floating_point()
        )
        return tuple(floating)

    return function, [leaves[place].detach() for place in places]


def total(function: Function) -> Callable[..., Tensor]:
    """All results as one number."""
    return lambda *tensors: sum(result.sum() for result in function(*tensors))


def batch(tensor: Tensor) -> Tensor:
    return torch.stack([tensor, tensor * 0.75])


def vmap_all(function: Function, inputs: list[Tensor]) -> Any:
    return vmap(function, randomness="different")(*map(batch, inputs))


def vmap_last_dimension_of_first(function: Function, inputs: list[Tensor]) -> Any:
    in_dims = (-1, *[None] * (len(inputs) - 1))
    return vmap(function, in_dims=in_dims, randomness="same")(batch(inputs[0]).movedim(0, -1), *inputs[1:])


def jvp_of_ones(function: Function, inputs: list[Tensor]) -> Any:
    return jvp(function, tuple(inputs), tuple(map(torch.ones_like, inputs)))


def vjp_of_ones(function: Function, inputs: list[Tensor]) -> Any:
    results, pull_back = vjp(function, *inputs)
    return results, pull_back(tuple(map(torch.ones_like, results)))


def gradients_of_samples(function: Function, inputs: list[Tensor]) -> Any:
    return vmap(grad(total(function)), randomness="same")(*map(batch, inputs))


def derivative(transform: Callable) -> Callable:
    def apply(function: Function, inputs: list[Tensor]) -> Any:
        if inputs[0].numel() > LARGEST_INPUT[transform]:
            return None
        return transform(total(function) if transform is hessian else function)(*inputs)

    apply.__name__ = transform.__name__
    return apply


TRANSFORMS = (
    vmap_all, vmap_last_dimension_of_first, jvp_of_ones, vjp_of_ones, gradients_of_samples,
    *map(derivative, (jacrev, jacfwd, hessian)),
)  # fmt: skip


def cases() -> Iterator:
    for op, transform in itertools.product((*op_db, *autograd_function_db), TRANSFORMS):
        if torch.float64 in op.supported_backward_dtypes("cpu") and not matches(op.full_name, SKIPPED):
            marks = () if op.full_name in QUICK else (pytest.mark.conformance,)
            yield pytest.param(op, transform, id=f"{op.full_name}-{transform.__name__}", marks=marks)


def run(transform: Callable, op: OpInfo, sample: SampleInput, device: str) -> Any:
    """The transform's results, or the exception that says why there are none."""
    positional, keywords = moved(op, sample, device)
    arguments = (tuple(positional), keywords)
    function, inputs = as_function(op, sample, arguments)
    torch.manual_seed(0)
    try:
        results = transform(function, inputs) if inputs else None
        return pytree.tree_map_only(Tensor, Tensor.detach, results)
    except Exception as error:
        return error


@pytest.mark.parametrize(("op", "transform"), list(cases()))
def test_transform_like_cpu(op, transform, record_property):
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(op.sample_inputs("cpu", torch.float64), SAMPLES):
            expected = run(transform, op, sample, "cpu")
            if isinstance(expected, Exception) or expected is None:
                continue
            with on_device(lambda stats: None):
                actual = run(transform, op, sample, "npu")
            if isinstance(actual, Exception):
                raise actual
            assert_like(actual, expected, rtol=1e-7, atol=1e-9, values=not draws(op.full_name, sample))
            compared += 1
    record_property("samples", compared)
    if not compared:
        pytest.skip("the CPU refuses all samples")

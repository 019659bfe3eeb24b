"""Sizes, dimensions and dtypes that CPU refuses are refused at the call, not later; those that it takes are taken."""

from __future__ import annotations

import pytest
import torch
from test_argument_errors import BOOL, HALF, LONG, F, Maker, aten, cases, expect_no_error, expect_the_error_of_cpu

DOUBLE = torch.float64


def number(m):
    return m.ones(1).sum()


@cases(
    {
        "linear": lambda m: F.linear(m.ones(2, 3), m.ones(4, 3), m.ones(5)),
        "addmm_rows": lambda m: torch.addmm(m.ones(3, 4), m.ones(2, 3), m.ones(3, 4)),
        "addmm_in_place": lambda m: m.ones(1, 4).addmm_(m.ones(2, 3), m.ones(3, 4)),
        "addmm_inner": lambda m: torch.addmm(m.ones(5), m.ones(2, 3), m.ones(5, 4)),
        "addmm_activation": lambda m: torch._addmm_activation(m.ones(5), m.ones(2, 3), m.ones(3, 4)),
        "addbmm": lambda m: torch.addbmm(m.ones(5), m.ones(2, 2, 3), m.ones(2, 3, 4)),
        "addbmm_batches": lambda m: torch.addbmm(m.ones(4), m.ones(2, 2, 3), m.ones(3, 3, 4)),
        "addbmm_inner": lambda m: torch.addbmm(m.ones(4), m.ones(2, 2, 3), m.ones(2, 5, 4)),
        "addbmm_matrix": lambda m: torch.addbmm(m.ones(4), m.ones(2, 3), m.ones(2, 5, 4)),
        "addbmm_second_matrix": lambda m: torch.addbmm(m.ones(4), m.ones(2, 2, 3), m.ones(5, 4)),
        "addbmm_dtype": lambda m: torch.addbmm(m.ones(2, 4, dtype=DOUBLE), m.ones(2, 2, 3), m.ones(2, 3, 4)),
        "conv2d_groups": lambda m: F.conv2d(m.ones(1, 2, 4, 4), m.ones(2, 1, 3, 3, dtype=DOUBLE), groups=2),
        "conv2d_half": lambda m: F.conv2d(m.ones(1, 1, 4, 4, dtype=HALF), m.ones(1, 1, 3, 3)),
    }
)
def test_products(call):
    expect_the_error_of_cpu(call)


def put(m, sizes, indices, values):
    m.ones(*sizes)[tuple(m.tensor(index) if index else slice(None) for index in indices)] = values


@cases(
    {
        "assignment": lambda m: m.ones(5, 3).__setitem__(m.tensor([0, 1]), m.ones(3, 3)),
        "put": lambda m: m.ones(5, 3).index_put_((m.tensor([0, 1]),), m.ones(4)),
        "accumulated": lambda m: m.ones(5, 3).index_put_((m.tensor([0, 1]),), m.ones(4), accumulate=True),
        "later_dimension": lambda m: put(m, (5, 3, 4), [None, [0, 1]], m.ones(2, 2, 4)),
        "neighbours": lambda m: put(m, (5, 3, 4), [None, [0, 1], [0, 1]], m.ones(2, 5)),
        "apart": lambda m: put(m, (5, 3, 4), [[0, 1], None, [0, 1]], m.ones(3, 2)),
        "no_index": lambda m: m.ones(5, 3).index_put_((), m.ones(4)),
        "too_many": lambda m: put(m, (5,), [[0, 1], [0, 1]], m.ones(2)),
        "indices_that_do_not_fit": lambda m: put(m, (5, 3), [[0, 1], [0, 1, 2]], m.ones(3)),
        "mask": lambda m: m.ones(5).__setitem__(m.ones(4) > 0, 1.0),
        "mask_of_too_many_dimensions": lambda m: m.ones(5).__setitem__(m.ones(5, 1) > 0, 1.0),
        "nothing_to_index": lambda m: put(m, (0, 3), [[0]], m.ones(3)),
        "dtype": lambda m: m.ones(5, 3).index_put_((m.tensor([0, 1]),), m.ones(3, dtype=DOUBLE)),
    }
)
def test_values_put_at_indices(call):
    expect_the_error_of_cpu(call)


@cases(
    {
        "row": lambda m: put(m, (5, 3), [[0, 1]], m.ones(3)),
        "later_dimension": lambda m: put(m, (5, 3, 4), [None, [0, 1]], m.ones(5, 2, 4)),
        "neighbours": lambda m: put(m, (5, 3, 4), [None, [0, 1], [0, 1]], m.ones(5, 2)),
        "apart": lambda m: put(m, (5, 3, 4), [[0, 1], None, [0, 1]], m.ones(2, 3)),
        "matrix_and_row": lambda m: put(m, (5, 3), [[[0], [1]], [0, 1, 2]], m.ones(2, 3)),
        "mask": lambda m: m.ones(5).__setitem__(m.ones(5, dtype=BOOL), m.ones(5)),
        "mask_and_index": lambda m: m.ones(5, 3).__setitem__((m.ones(5, dtype=BOOL), m.tensor([0])), 2.0),
        "nothing": lambda m: m.ones(0, 3).index_put_([m.empty(0, dtype=LONG)], m.ones(3)),
    }
)
def test_values_that_fit_the_indices(call):
    expect_no_error(call)


@cases(
    {
        "flip": lambda m: m.ones(2, 3).flip(5),
        "flip_twice": lambda m: m.ones(2, 3).flip(0, 0),
        "flip_number": lambda m: number(m).flip(1),
        "renorm": lambda m: m.ones(2, 3).renorm(2, 5, 1.0),
        "renorm_vector": lambda m: m.ones(3).renorm(2, 5, 1.0),
        "index_fill_matrix": lambda m: m.ones(2, 3).index_fill_(0, m.tensor([[0], [1]]), 1.0),
        "index_fill_dim": lambda m: m.ones(2, 3).index_fill_(4, m.tensor([0]), 1.0),
        "index_fill_dtype": lambda m: m.ones(2, 3).index_fill_(0, m.ones(1), 1.0),
        "index_fill_complex": lambda m: m.ones(2, 3).index_fill_(0, m.tensor([0]), 1j),
        "index_fill_values": lambda m: m.ones(2, 3).index_fill_(0, m.tensor([0]), m.ones(2)),
        "index_fill_number": lambda m: number(m).index_fill_(1, m.tensor([0]), number(m)),
        "index_select_number": lambda m: number(m).index_select(0, m.tensor([0, 0])),
        "index_select_nothing": lambda m: number(m).index_select(0, m.empty(0, dtype=LONG)),
        "index_select_matrix": lambda m: m.ones(3).index_select(0, m.tensor([[0]])),
        "index_select_dim": lambda m: number(m).index_select(2, m.tensor([0])),
    }
)
def test_dimensions(call):
    expect_the_error_of_cpu(call)


def batch_norm(m, mean, variance, training):
    return torch.native_batch_norm(m.ones(2, 3, 4), m.ones(3), m.ones(3), mean, variance, training, 0.1, 1e-5)


def group_norm(m, weight=(4,), bias=(4,), batch=2, groups=2):
    return torch.native_group_norm(m.ones(2, 4, 3), m.ones(*weight), m.ones(*bias), batch, 4, 3, groups, 1e-5)


def group_norm_backward(m, grad=(2, 4, 3), mean=(2, 2), rstd=(2, 2), weight=(4,), groups=2, dtype=torch.float32):
    tensors = m.ones(*grad, dtype=dtype), m.ones(2, 4, 3), m.ones(*mean), m.ones(*rstd), m.ones(*weight)
    return aten.native_group_norm_backward(*tensors, 2, 4, 3, groups, [True] * 3)


@cases(
    {
        "batch_norm_mean": lambda m: batch_norm(m, m.ones(3, 1), m.ones(3), True),
        "batch_norm_variance": lambda m: batch_norm(m, m.ones(3), m.ones(3, 1), False),
        "group_norm_weight": lambda m: group_norm(m, weight=(5,)),
        "group_norm_groups": lambda m: group_norm(m, groups=3),
        "group_norm_no_group": lambda m: group_norm(m, groups=0),
        "group_norm_batch": lambda m: group_norm(m, batch=3),
        "group_norm_backward_grad": lambda m: group_norm_backward(m, grad=(2, 4, 5)),
        "group_norm_backward_mean": lambda m: group_norm_backward(m, mean=(3, 2)),
        "group_norm_backward_rstd": lambda m: group_norm_backward(m, rstd=(3, 2)),
        "group_norm_backward_weight": lambda m: group_norm_backward(m, weight=(5,)),
        "group_norm_backward_groups": lambda m: group_norm_backward(m, groups=3),
        "group_norm_backward_dtype": lambda m: group_norm_backward(m, dtype=DOUBLE),
        "channel_shuffle_groups": lambda m: F.channel_shuffle(m.ones(1, 4, 2), 3),
        "channel_shuffle_no_group": lambda m: F.channel_shuffle(m.ones(1, 4, 2), 0),
        "channel_shuffle_matrix": lambda m: F.channel_shuffle(m.ones(4, 2), 2),
        "native_channel_shuffle_groups": lambda m: torch.native_channel_shuffle(m.ones(1, 4, 2), 3),
    }
)
def test_operands_of_layers(call):
    expect_the_error_of_cpu(call)


def test_group_norm_tells_the_shape_of_its_bias():  # for which CPU shows that of the weight
    with pytest.raises(RuntimeError, match=r"bias of shape \[4, 1\] and input of shape \[2, 4, 3\]"):
        group_norm(Maker("npu"), bias=(4, 1))


@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16])
@pytest.mark.parametrize("operator", ["_standard_gamma", "_sample_dirichlet"])
def test_gamma_of_small_floats(operator, dtype):
    expect_the_error_of_cpu(lambda m: getattr(torch, operator)(m.ones(3, dtype=dtype)))

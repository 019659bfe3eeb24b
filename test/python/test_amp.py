"""torch.npu.amp: torch.amp under the names and with the defaults of torch.cuda.amp."""

import pytest
import torch


def test_autocast_chooses_the_dtype_of_matrix_products():
    x = torch.ones(4, 4, device="npu")
    with torch.npu.amp.autocast():
        assert (x @ x).dtype == torch.float16
        with torch.npu.amp.autocast(enabled=False):
            assert (x @ x).dtype == torch.float32
    with torch.npu.amp.autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    assert (x @ x).dtype == torch.float32


def test_gradient_scaler_skips_steps_that_overflow():
    weight = torch.ones(4, device="npu", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.npu.amp.GradScaler(init_scale=1024.0)
    for factor, expected, scale in ((1.0, 0.5, 1024.0), (float("inf"), 0.5, 512.0), (1.0, 0.0, 512.0)):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == [expected] * 4
        assert scaler.get_scale() == scale


def test_custom_functions_run_in_the_dtype_they_ask_for():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.npu.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            assert x.dtype == torch.float32
            return x * 2

        @staticmethod
        @torch.npu.amp.custom_bwd
        def backward(ctx, gradient):
            assert not torch.is_autocast_enabled("npu")
            return gradient * 2

    x = torch.ones(3, dtype=torch.float16, device="npu", requires_grad=True)
    with torch.npu.amp.autocast():
        y = Double.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_availability():
    assert not torch.npu.amp.amp_definitely_not_available()
    with pytest.warns(UserWarning, match="npu"), torch.npu.amp.autocast(dtype=torch.float64):
        pass  # autocast says which dtypes it knows, and turns itself off
